"""What the client tests share."""

import warnings

with warnings.catch_warnings():  # on Python 3.11 and 3.12 the wyoming library warns of its own imports
    warnings.simplefilter("ignore", DeprecationWarning)
    import wyoming.audio  # noqa: F401
