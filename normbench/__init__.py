"""normbench: which normalization, in which implementation, should this config use?"""

__version__ = "0.1.0"
