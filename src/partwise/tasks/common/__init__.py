"""What all tasks share: the base of estimators, the registry, the model file, options of the command line."""
