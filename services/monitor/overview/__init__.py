"""One look: is money being taken, are webhooks going out, is anything stuck?"""
