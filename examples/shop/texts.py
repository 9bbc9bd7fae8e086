"""The texts of the shop in Arabic and English, and the language of a request.

`?lang=en` selects the language, a cookie stores it, and Arabic is the default.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from flask import Flask, Response, g, request

from .orders import Line

_COOKIE = "shop-lang"
_ONE_YEAR_S = 365 * 86_400


def current_language() -> str:
    wanted = request.args.get("lang") or request.cookies.get(_COOKIE)
    return wanted if wanted in LANGUAGES else DEFAULT_LANGUAGE


def register_language(app: Flask, *, is_https: bool) -> None:
    @app.before_request
    def choose() -> None:
        g.lang = current_language()

    @app.after_request
    def remember(response: Response) -> Response:
        if request.args.get("lang") in LANGUAGES:
            response.set_cookie(
                _COOKIE,
                # Not g.lang: a form that was rejected before `choose` has none.
                current_language(),
                max_age=_ONE_YEAR_S,
                httponly=True,
                samesite="Lax",
                secure=is_https,
            )
        return response


LANGUAGES = ("ar", "en")
DEFAULT_LANGUAGE = "ar"

_PRODUCTS = {
    "coffee": ("قهوة عربية", "Arabic coffee", "دلّة صغيرة بالهيل", "A small pot, with cardamom"),
    "tea": ("شاي أخضر باللوز", "Green tea with almonds", "كأس بالنعناع ولوز محمّص", "A glass with mint and roasted almonds"),
    "maqrood": ("مقروض", "Maqrood", "سميد بالتمر والعسل، ست قطع", "Semolina with dates and honey, six pieces"),
    "ghraiba": ("غريبة", "Ghraiba", "تذوب في الفم، ثماني قطع", "They melt in the mouth, eight pieces"),
    "dates": ("تمر دقلة", "Deglet dates", "علبة نصف كيلو من الجفرة", "Half a kilo, from Jufra"),
    "beans": ("بُنّ محمّص", "Roasted beans", "نصف كيلو، تحميصة اليوم", "Half a kilo, roasted today"),
}  # fmt: skip

_TEXTS = {
    "shop": ("مقهى الميدان", "Maidan Coffee"),
    "tagline": ("قهوة وحلويات من طرابلس", "Coffee and sweets from Tripoli"),
    "demo": ("متجر للتجربة: لا يُباع فيه شيء حقيقي.", "A demo shop: nothing in it is really sold."),
    "test": ("متجر تجريبي: الدفع ببطاقات الاختبار، ولا يُخصم أي مبلغ.", "Test mode: pay with test cards, no money moves."),
    "skip": ("إلى المحتوى", "Skip to the content"),
    "menu": ("أقسام المتجر", "Sections of the shop"),
    "to_shop": ("القائمة", "Menu"),
    "to_orders": ("الطلبات", "Orders"),
    "to_admin": ("إدارة المتجر", "Shop admin"),
    "welcome": ("ماذا نُحضّر لك؟", "What can we make for you?"),
    "lead": ("اختر ما تشتهي، ثم ادفع بالبطاقة أو بالمحفظة.", "Choose what you like, then pay by card or mobile wallet."),
    "quantity_of": ("كمية {name}", "Quantity of {name}"),
    "one_less": ("أنقص {name}", "One {name} less"),
    "one_more": ("زد {name}", "One {name} more"),
    "total": ("المجموع", "Total"),
    "order_and_pay": ("اطلب وادفع", "Order and pay"),
    "is_empty": ("اختر شيئًا واحدًا على الأقل.", "Choose at least one thing."),
    "try_card": ("للتجربة ادفع بالبطاقة {card}، بأي تاريخ قادم وأي رمز أمان.", "To try it, pay with card {card}, any future date and any security code."),
    "order_title": ("الطلب رقم {number}", "Order {number}"),
    "state_starting": ("نُجهّز صفحة الدفع…", "Preparing your payment…"),
    "state_starting_more": ("خدمة الدفع لا تجيب الآن. نعيد المحاولة وحدنا، ولن تدفع مرّتين.", "The payment service is not responding. We keep trying, and you will not pay twice."),
    "state_unpaid": ("بانتظار الدفع", "Waiting for your payment"),
    "state_unpaid_more": ("أكمل الدفع في صفحة ميزان الآمنة.", "Complete the payment on Mizan's secure page."),
    "state_processing": ("دفعك قيد التأكيد", "Your payment is being confirmed"),
    "state_processing_more": ("لا حاجة لأن تدفع مرّة أخرى. تتحدّث هذه الصفحة وحدها.", "There is no need to pay again. This page updates itself."),
    "state_fulfilled": ("طلبك جاهز. صحّتين!", "Your order is ready. Enjoy!"),
    "state_fulfilled_more": ("وصلنا دفعك، شكرًا لك.", "We have received your payment, thank you."),
    "state_expired": ("انتهى وقت الدفع", "The time to pay is over"),
    "state_expired_more": ("لم يُخصم شيء. يمكنك أن تدفع من جديد.", "You were not charged. You can pay again."),
    "state_refused": ("تعذّر بدء الدفع", "The payment could not be started"),
    "state_refused_more": ("رفضت خدمة الدفع الطلب. من فضلك أخبرنا.", "The payment service refused the request. Please contact us."),
    "state_doubtful": ("دفعك يحتاج إلى مراجعة", "Your payment needs a review"),
    "state_doubtful_more": ("المبلغ المدفوع ليس مبلغ الطلب، فلم نُسلّمه. سنتواصل معك.", "The amount paid is not the amount of the order, so we have not handed it out. We will contact you."),
    "mizan_unavailable": ("تعذّر الوصول إلى ميزان الآن، فلم يبدأ أي دفع. حاول بعد قليل.", "Mizan cannot be reached now, so no payment was started. Try again in a moment."),
    "pay_now": ("ادفع الآن", "Pay now"),
    "pay_again": ("ادفع من جديد", "Pay again"),
    "buy_more": ("اطلب شيئًا آخر", "Order something else"),
    "your_order": ("طلبك", "Your order"),
    "progress": ("سير الطلب، خطوة خطوة", "Progress, step by step"),
    "journal": ("كل ما حدث", "Full history"),
    "journal_more": ("كما كتبه المتجر في دفتره، بتوقيت طرابلس.", "From the shop's journal, in Tripoli time."),
    "live": ("تتحدّث هذه الصفحة وحدها.", "This page updates itself."),
    "reload": ("بلا جافاسكربت: أعد تحميل الصفحة لترى الجديد.", "Without JavaScript: reload the page to see what is new."),
    "step_cart": ("حُفظ الطلب", "Order stored"),
    "step_intent_created": ("أُنشئ طلب الدفع", "Payment intent created"),
    "step_at_checkout": ("في صفحة الدفع", "At the checkout"),
    "step_paid": ("دُفع", "Paid"),
    "step_webhook": ("وصل الإشعار", "Webhook received"),
    "step_compared": ("سُئل ميزان وقورن المبلغ", "Re-fetched and compared"),
    "step_fulfilled": ("سُلّم الطلب", "Order fulfilled"),
    "step_mizan_away": ("ميزان لا يجيب", "Mizan did not respond"),
    "step_refused": ("رفض ميزان طلب الدفع", "Mizan refused the intent"),
    "step_returned": ("عاد الزبون إلى المتجر", "The customer returned"),
    "step_webhook_again": ("وصل الإشعار نفسه مرّة أخرى", "The same webhook arrived again"),
    "step_expired": ("انتهى وقت الدفع", "The time to pay is over"),
    "step_mismatch": ("المبلغ لا يطابق الطلب", "The amount does not match the order"),
    "step_paid_twice": ("دُفع مرّتين: يجب ردّ المبلغ", "Paid twice: refund needed"),
    "about_cart": ("بمرجع خاصّ بنا، قبل أن يُسأل ميزان.", "With our own reference, before Mizan is called."),
    "about_intent_created": ("\u2066POST /payment-intents\u2069، يمكن تكراره بلا ضرر.", "POST /payment-intents, which is safe to repeat."),
    "about_at_checkout": ("أُرسل الزبون إلى \u2066checkout_url\u2069.", "The customer was sent to checkout_url."),
    "about_paid": ("بحسب ميزان.", "According to Mizan."),
    "about_webhook": ("التوقيع صحيح، كُتب ثم أُجيب.", "Signature is valid; stored, then acknowledged."),
    "about_webhook_missing": ("لم يصل بعد؛ عرفنا بالدفع لأننا سألنا.", "Not received yet; we know of the payment because we asked."),
    "about_compared": ("\u2066GET /payment-intents/{uuid}\u2069: الحالة والمبلغ والعملة.", "GET /payment-intents/{uuid}: status, amount and currency."),
    "about_fulfilled": ("مرّة واحدة، مهما تكرّر الإشعار.", "Once, however many webhooks arrive."),
    "done": ("تمّ", "done"),
    "current": ("الآن", "now"),
    "waiting": ("لم يحن بعد", "not yet"),
    "problem": ("مشكلة", "problem"),
    "signature_ok": ("التوقيع صحيح", "signature ok"),
    "orders_title": ("الطلبات", "Orders"),
    "orders_more": ("ما يراه صاحب المتجر. لا تُفتح هذه الصفحة إلا على هذا الجهاز.", "What the shopkeeper sees. This page works on this machine only."),
    "no_orders": ("لا طلبات بعد.", "No orders yet."),
    "order": ("الطلب", "Order"),
    "when": ("الوقت", "Time"),
    "amount": ("المبلغ", "Amount"),
    "state": ("الحالة", "State"),
    "short_starting": ("يُجهّز", "starting"),
    "short_unpaid": ("غير مدفوع", "unpaid"),
    "short_processing": ("قيد التأكيد", "being confirmed"),
    "short_fulfilled": ("سُلّم", "fulfilled"),
    "short_expired": ("انتهى وقته", "expired"),
    "short_refused": ("مرفوض", "refused"),
    "short_doubtful": ("للمراجعة", "needs review"),
    "admin_title": ("إدارة المتجر", "Shop admin"),
    "admin_note": ("للتجربة والتطوير فقط: لا تسجيل دخول هنا، ولا تُفتح هذه الصفحة إلا على هذا الجهاز. لا تنقلها إلى متجرك.", "For experiments only: there is no sign-in, and this page works on this machine only. Do not copy it into your shop."),
    "endpoint": ("كيف يجيب المتجر على إشعارات ميزان", "How the shop responds to Mizan's webhooks"),
    "endpoint_more": ("غيّره، اشترِ قهوة، وراقب المحاولات هنا وفي لوحة التحكّم.", "Change it, buy a coffee, and watch the retries here and in the dashboard."),
    "behave_good": ("جيّدًا: يكتبه ويجيب 200", "Correctly: stores it and responds with 200"),
    "behave_fail": ("بخطأ 500", "Fails with 500"),
    "behave_hang": ("لا يجيب: يصمت 15 ثانية، وميزان ينتظر 10", "Hangs for 15 seconds; Mizan waits for 10"),
    "behave_redirect": ("يحوّل إلى عنوان آخر، 302، وميزان لا يتبعه", "Redirects with 302, which Mizan does not follow"),
    "behave_unauthorized": ("يرفض بلا سبب، 401", "Refuses without a reason, 401"),
    "set_switch": ("اضبط الردّ", "Set the response"),
    "switch_is_set": ("ضُبط ردّ المتجر على الإشعارات: {how}.", "The response to webhooks is set: {how}."),
    "to_deliveries": ("عمليات التسليم في لوحة التحكّم", "Deliveries in the dashboard"),
    "to_delivery": ("عملية التسليم هذه في لوحة التحكّم", "This delivery in the dashboard"),
    "to_payment": ("هذه الدفعة في لوحة التحكّم", "This payment in the dashboard"),
    "secret": ("سرّ الإشعارات", "Webhook secret"),
    "secret_more": ("بعد تغيير السرّ في لوحة التحكّم أو بأمر \u2066mizan app roll-secret\u2069، الصقه هنا. يُقبل القديم يومين آخرين.", "After you roll the secret in the dashboard or with mizan app roll-secret, paste the new one here. The old one is accepted for two more days."),
    "new_secret": ("السرّ الجديد", "New webhook secret"),
    "add_secret": ("أضف السرّ", "Add secret"),
    "secret_is_added": ("أُضيف السرّ، وهو مقبول من الآن.", "The secret was added and is accepted from now on."),
    "secret_is_wrong": ("السرّ يبدأ بـ \u2066whsec_\u2069 ولا فراغ فيه.", "A secret begins with whsec_ and has no spaces."),
    "secret_is_outdated": ("آخر إشعار لم يطابق أي سرّ نعرفه، فرفضناه بـ 401. إن كان السرّ قد تغيّر فالصق الجديد أدناه؛ يعيد ميزان المحاولة وحده.", "The last webhook matched no known secret, so we refused it with 401. If the secret was rolled, paste the new one below; Mizan retries automatically."),
    "requests": ("آخر الطلبات إلى نقطة الإشعارات", "Last requests to the endpoint"),
    "no_requests": ("لم يصل شيء بعد.", "No requests yet."),
    "answered": ("أجبنا {status}", "answered {status}"),
    "headers": ("الترويسات", "Headers"),
    "body": ("المحتوى", "Body"),
    "verdict_accepted": ("صحيح، كُتب", "valid, stored"),
    "verdict_again": ("صحيح، وصل من قبل", "valid, received before"),
    "verdict_bad_signature": ("التوقيع لا يطابق", "signature does not match"),
    "verdict_unreadable": ("موقّع لكنه غير مفهوم", "signed, but invalid"),
    "verdict_too_large": ("أكبر من المسموح", "too large"),
    "verdict_switched": ("صحيح، والمفتاح غيّر الجواب", "valid; the switch changed the response"),
    "not_found_title": ("لا شيء هنا", "There is nothing here"),
    "not_found_more": ("ربما نقص شيء من العنوان.", "Perhaps part of the address is missing."),
    "form_title": ("لم تعد الصفحة صالحة", "The page has expired"),
    "form_more": ("ارجع إلى القائمة وحاول من جديد.", "Go back to the menu and try again."),
    "error_title": ("حدث خطأ عندنا", "Something went wrong here"),
    "error_more": ("حاول من جديد بعد قليل.", "Try again in a moment."),
}  # fmt: skip


def translate(key: str, lang: str, **values: object) -> str:
    return _TEXTS[key][LANGUAGES.index(lang)].format_map(_KeepUnknownNames(values))


def product_name(code: str, lang: str) -> str:
    return _PRODUCTS[code][LANGUAGES.index(lang)]


def product_description(code: str, lang: str) -> str:
    return _PRODUCTS[code][2 + LANGUAGES.index(lang)]


def describe_lines(lines: Iterable[Line], lang: str) -> str:
    names = (f"{product_name(line.product, lang)} × {line.quantity}" for line in lines)
    return ("، " if lang == "ar" else ", ").join(names)


_MONTHS = {
    "ar": [
        "يناير",
        "فبراير",
        "مارس",
        "أبريل",
        "مايو",
        "يونيو",
        "يوليو",
        "أغسطس",
        "سبتمبر",
        "أكتوبر",
        "نوفمبر",
        "ديسمبر",
    ],
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
}


def format_time(at: datetime, lang: str) -> str:
    """Format a date and time as Mizan's pages do: 17 Nov 2026, 09:05:00."""
    comma = "،" if lang == "ar" else ","
    return f"{at.day} {_MONTHS[lang][at.month - 1]} {at.year}{comma} {at:%H:%M:%S}"


def format_money(amount: int, lang: str) -> str:
    """Format an amount in dinar with three decimals."""
    return f"{amount // 1000:,}.{amount % 1000:03d} {'د.ل' if lang == 'ar' else 'LYD'}"


class _KeepUnknownNames(dict[str, object]):
    """Keeps names in braces that have no value, as in a URL."""

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__(values)

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"
