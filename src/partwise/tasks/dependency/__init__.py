"""Which word each word of a sentence hangs on: dependency trees."""
