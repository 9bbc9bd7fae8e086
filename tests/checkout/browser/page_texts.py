"""Texts of the pages in each language, from the catalogues of the checkout."""

from tests.catalogue import Catalogue

LANGUAGES = ("ar", "en")
DIRECTIONS = {"ar": "rtl", "en": "ltr"}

READY = "How would you like to pay?"
CODE = "Enter the code"
PROCESSING = "Your payment is being confirmed"
PAID = "Your payment is complete"
EXPIRED = "This payment link has expired"
NO_METHOD = "No payment method is available"
REDIRECT_OPEN = "Continue on the bank's page"
UNKNOWN_LINK = "This link is not valid"
FORM_TOO_OLD = "This page was open for too long"
UNAVAILABLE = "This page is not available right now"

FAILED = "Your payment did not go through"
DECLINED = "The payment was declined. Try again, or pay in another way."
NO_MONEY = "There is not enough money in this account."
NOTHING_TAKEN = "Nothing was taken."
WRONG_CODE = "This code is not right. Check the message and try again."
SENT_A_MOMENT_AGO = "The code was sent a moment ago. Wait a little before you request it again."

CHECK_WHAT_YOU_ENTERED = "Please check what you entered"
CARD_NUMBER_MISSING = "Enter the number on your card."
CARD_NUMBER_WRONG = "This card number is not right. Check its digits."
EXPIRY_MISSING = "Enter the expiry date of your card: month and year."
EXPIRY_WRONG = "Enter the month and the year as on your card, for example 08/29."
EXPIRY_PAST = "This card has expired."
SECURITY_CODE_WRONG = "Enter the 3 or 4 digits of the security code."
PHONE_WRONG = "This phone number is not right. Enter it as 0912345678."
SADAD_PREFIXES = {"ar": "سداد يقبل أرقام 091 و093 فقط.", "en": "Sadad takes 091 and 093 numbers only."}
BIRTH_YEAR_WRONG = "Enter your birth year in four digits."
CODE_WRONG_LENGTH = "The code has a different number of digits. Check the message."

say = Catalogue("services.checkout").say
