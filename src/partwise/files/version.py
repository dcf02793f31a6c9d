"""Which partwise this is: files say who wrote them."""

__version__ = "0.2.0"
