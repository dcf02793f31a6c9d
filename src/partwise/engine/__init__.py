"""How one source runs both compiled and interpreted: compilation, its cache on disk, threads, memory, sparse vectors."""
