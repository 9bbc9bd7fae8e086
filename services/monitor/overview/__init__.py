"""The overview: are payments succeeding, are webhooks delivered, is anything stuck?"""
