"""Import the wyoming library once without its own warnings."""

import warnings

with warnings.catch_warnings():  # on Python 3.11 and 3.12 the library's imports are deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    import wyoming.audio  # noqa: F401
