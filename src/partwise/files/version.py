"""Which partwise this is: files say who wrote them."""

__version__ = "0.1.0.dev0"
