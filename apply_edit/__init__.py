"""Apply a code edit to a file with a local language model: fast, exact, and safe."""

__version__ = "0.1.0"
