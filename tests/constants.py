"""Values that tests of several services share."""

UNKNOWN_ID = "0b5a3f6e-7c41-4d1e-9a52-6e0f8d2c9b17"
"""An id that no row has. It is fixed because it becomes part of test names, which all workers must agree on."""

CHECKOUT_URL = "https://pay.mizan.example"
