"""What the shop says, in Arabic and English."""

from collections.abc import Iterable, Mapping

from examples.shop.products import Line

LANGUAGES = ("ar", "en")
DEFAULT = "ar"

_PRODUCTS = {
    "coffee": ("قهوة عربية", "Arabic coffee", "دلّة صغيرة بالهيل", "A small pot, with cardamom"),
    "tea": ("شاي أخضر باللوز", "Green tea with almonds", "كأس بالنعناع ولوز محمّص", "A glass with mint and roasted almonds"),
    "maqrood": ("مقروض", "Maqrood", "سميد بالتمر والعسل، ست قطع", "Semolina with dates and honey, six pieces"),
    "ghraiba": ("غريبة", "Ghraiba", "تذوب في الفم، ثماني قطع", "They melt in the mouth, eight pieces"),
    "dates": ("تمر دقلة", "Deglet dates", "علبة نصف كيلو من الجفرة", "Half a kilo, from Jufra"),
    "beans": ("بُنّ محمّص", "Roasted beans", "نصف كيلو، تحميصة اليوم", "Half a kilo, roasted today"),
}  # fmt: skip

_SENTENCES = {
    "shop": ("مقهى الميدان", "Maidan Coffee"),
    "tagline": ("قهوة وحلويات من طرابلس", "Coffee and sweets from Tripoli"),
    "demo": ("متجر للتجربة: لا يُباع فيه شيء حقيقي.", "A demo shop: nothing in it is really sold."),
    "skip": ("إلى المحتوى", "Skip to the content"),
    "menu": ("أقسام المتجر", "Sections of the shop"),
    "to_shop": ("القائمة", "Menu"),
    "to_orders": ("الطلبات", "Orders"),
    "to_backstage": ("خلف المنضدة", "Behind the counter"),
    "welcome": ("ماذا نُحضّر لك؟", "What can we make for you?"),
    "lead": ("اختر ما تشتهي، ثم ادفع بالبطاقة أو بالمحفظة.", "Choose what you like, then pay by card or mobile wallet."),
    "quantity_of": ("كمية {name}", "Quantity of {name}"),
    "one_less": ("أنقص {name}", "One {name} less"),
    "one_more": ("زد {name}", "One {name} more"),
    "total": ("المجموع", "Total"),
    "order_and_pay": ("اطلب وادفع", "Order and pay"),
    "nothing_chosen": ("اختر شيئًا واحدًا على الأقل.", "Choose at least one thing."),
    "try_card": ("للتجربة ادفع بالبطاقة {card}، بأي تاريخ قادم وأي رمز أمان.", "To try it out, pay with card {card}, any date ahead and any security code."),
    "order_title": ("الطلب رقم {number}", "Order {number}"),
    "state_starting": ("نُجهّز صفحة الدفع…", "Preparing your payment…"),
    "state_starting_more": ("خدمة الدفع لا تجيب الآن. نعيد المحاولة وحدنا، ولن تدفع مرّتين.", "The payment service does not answer at the moment. We keep trying, and you will not pay twice."),
    "state_unpaid": ("بانتظار الدفع", "Waiting for your payment"),
    "state_unpaid_more": ("أكمل الدفع في صفحة ميزان الآمنة.", "Complete the payment on Mizan's secure page."),
    "state_processing": ("دفعك قيد التأكيد", "Your payment is being confirmed"),
    "state_processing_more": ("لا حاجة لأن تدفع مرّة أخرى. تتحدّث هذه الصفحة وحدها.", "There is no need to pay again. This page updates itself."),
    "state_fulfilled": ("طلبك جاهز. صحّتين!", "Your order is ready. Enjoy!"),
    "state_fulfilled_more": ("وصلنا دفعك، شكرًا لك.", "We have received your payment, thank you."),
    "state_expired": ("انتهى وقت الدفع", "The time to pay is over"),
    "state_expired_more": ("لم يُخصم شيء. يمكنك أن تدفع من جديد.", "Nothing was taken. You can pay anew."),
    "state_refused": ("تعذّر بدء الدفع", "The payment could not be begun"),
    "state_refused_more": ("رفضت خدمة الدفع الطلب. من فضلك أخبرنا.", "The payment service refused it. Please tell us."),
    "state_doubtful": ("دفعك يحتاج إلى مراجعة", "Your payment has to be looked at"),
    "state_doubtful_more": ("المبلغ المدفوع ليس مبلغ الطلب، فلم نُسلّمه. سنتواصل معك.", "What was paid is not what the order costs, so we have not handed it out. We will be in touch."),
    "mizan_is_away": ("تعذّر الوصول إلى ميزان الآن، فلم يبدأ أي دفع. حاول بعد قليل.", "Mizan cannot be reached now, so no payment was begun. Try again in a moment."),
    "pay_now": ("ادفع الآن", "Pay now"),
    "pay_anew": ("ادفع من جديد", "Pay anew"),
    "buy_more": ("اطلب شيئًا آخر", "Order something else"),
    "your_order": ("طلبك", "Your order"),
    "progress": ("سير الطلب، خطوة خطوة", "How it goes, step by step"),
    "journal": ("كل ما حدث", "All that happened"),
    "journal_more": ("كما كتبه المتجر في دفتره، بتوقيت طرابلس.", "As the shop wrote it into its journal, in Tripoli's time."),
    "live": ("تتحدّث هذه الصفحة وحدها.", "This page updates itself."),
    "reload": ("بلا جافاسكربت: أعد تحميل الصفحة لترى الجديد.", "Without JavaScript: reload the page to see what is new."),
    "step_cart": ("كُتب الطلب", "Order written down"),
    "step_intent_created": ("أُنشئت عملية الدفع", "Payment intent created"),
    "step_at_checkout": ("في صفحة الدفع", "At the checkout"),
    "step_paid": ("دُفع", "Paid"),
    "step_webhook": ("وصل الإشعار", "Webhook received"),
    "step_compared": ("سُئل ميزان وقورن المبلغ", "Re-fetched and compared"),
    "step_fulfilled": ("سُلّم الطلب", "Order fulfilled"),
    "step_mizan_away": ("ميزان لا يجيب", "Mizan did not answer"),
    "step_refused": ("رفض ميزان العملية", "Mizan refused the intent"),
    "step_returned": ("عاد الزبون إلى المتجر", "The customer came back"),
    "step_webhook_again": ("وصل الإشعار نفسه مرّة أخرى", "The same webhook came again"),
    "step_expired": ("انتهى وقت الدفع", "The time to pay is over"),
    "step_mismatch": ("المبلغ لا يطابق الطلب", "The amount is not the order's"),
    "step_paid_twice": ("دُفع مرّتين: يجب ردّ المبلغ", "Paid twice: money to give back"),
    "about_cart": ("بمرجع خاصّ بنا، قبل أن يُسأل ميزان.", "With a reference of our own, before Mizan is asked."),
    "about_intent_created": ("\u2066POST /payment-intents\u2069، يمكن تكراره بلا ضرر.", "POST /payment-intents, which can be repeated without harm."),
    "about_at_checkout": ("أُرسل الزبون إلى checkout_url.", "The customer was sent to checkout_url."),
    "about_paid": ("بحسب ميزان.", "According to Mizan."),
    "about_webhook": ("التوقيع صحيح، كُتب ثم أُجيب.", "Signature is right; written down, then answered."),
    "about_webhook_missing": ("لم يصل بعد؛ عرفنا بالدفع لأننا سألنا.", "Not here yet; we know of the payment because we asked."),
    "about_compared": ("\u2066GET /payment-intents/{uuid}\u2069: الحالة والمبلغ والعملة.", "GET /payment-intents/{uuid}: status, amount and currency."),
    "about_fulfilled": ("مرّة واحدة، مهما تكرّر الإشعار.", "Once, however often we are told."),
    "done": ("تمّ", "done"),
    "current": ("الآن", "now"),
    "waiting": ("لم يحن بعد", "not yet"),
    "trouble": ("مشكلة", "trouble"),
    "signature_ok": ("التوقيع صحيح", "signature ok"),
    "orders_title": ("الطلبات", "Orders"),
    "orders_more": ("ما يراه صاحب المتجر. لا تُفتح هذه الصفحة إلا على هذا الجهاز.", "What the shopkeeper sees. This page opens on this machine only."),
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
    "short_doubtful": ("للمراجعة", "to be looked at"),
    "backstage_title": ("خلف المنضدة", "Behind the counter"),
    "backstage_note": ("للتجربة والتطوير فقط: لا تسجيل دخول هنا، ولا تُفتح هذه الصفحة إلا على هذا الجهاز. لا تنقلها إلى متجرك.", "For trying out and development only: there is no sign-in, and this page opens on this machine only. Do not take it over into your shop."),
    "endpoint": ("كيف يجيب المتجر على إشعارات ميزان", "How the shop answers Mizan's webhooks"),
    "endpoint_more": ("غيّره، اشترِ قهوة، وراقب المحاولات هنا وفي لوحة التحكّم.", "Change it, buy a coffee, and watch the retries here and in the dashboard."),
    "behave_good": ("جيّدًا: يكتبه ويجيب 200", "Well: writes it down and answers 200"),
    "behave_fail": ("بخطأ 500", "With an error, 500"),
    "behave_hang": ("لا يجيب: يصمت 15 ثانية، وميزان ينتظر 10", "Hangs: silent for 15 seconds, of which Mizan waits 10"),
    "behave_redirect": ("يحوّل إلى عنوان آخر، 302، وميزان لا يتبعه", "Redirects, 302, which Mizan does not follow"),
    "behave_unauthorized": ("يرفض بلا سبب، 401", "Refuses without reason, 401"),
    "set_switch": ("اضبط", "Set"),
    "switch_is_set": ("ضُبط.", "It is set."),
    "to_deliveries": ("الإشعارات في لوحة التحكّم", "The deliveries in the dashboard"),
    "secret": ("سرّ الإشعارات", "Webhook secret"),
    "secret_more": ("بعد تغيير السرّ في لوحة التحكّم أو بأمر mizan app roll-secret، الصقه هنا. يُقبل القديم يومين آخرين.", "After a roll, in the dashboard or by mizan app roll-secret, paste the new one here. The old one is accepted for two more days."),
    "new_secret": ("السرّ الجديد", "New webhook secret"),
    "add_secret": ("أضف السرّ", "Add secret"),
    "secret_is_added": ("أُضيف السرّ، وهو مقبول من الآن.", "The secret is added, and accepted from now on."),
    "secret_is_wrong": ("السرّ يبدأ بـ whsec_ ولا فراغ فيه.", "A secret begins with whsec_ and has no spaces."),
    "secret_is_stale": ("آخر إشعار لم يطابق أي سرّ نعرفه، فرفضناه بـ 401. إن كان السرّ قد تغيّر فالصق الجديد أدناه؛ يعيد ميزان المحاولة وحده.", "The last webhook fitted no secret that we know, so we refused it with 401. If the secret was rolled, paste the new one below; Mizan tries again by itself."),
    "requests": ("آخر الطلبات إلى نقطة الإشعارات", "The last requests to the endpoint"),
    "no_requests": ("لم يصل شيء بعد.", "Nothing has come yet."),
    "answered": ("أجبنا {status}", "answered {status}"),
    "headers": ("الترويسات", "Headers"),
    "body": ("المحتوى", "Body"),
    "verdict_accepted": ("صحيح، كُتب", "right, written down"),
    "verdict_again": ("صحيح، وصل من قبل", "right, received before"),
    "verdict_bad_signature": ("التوقيع لا يطابق", "signature does not fit"),
    "verdict_unreadable": ("موقّع لكنه غير مفهوم", "signed, but unreadable"),
    "verdict_too_large": ("أكبر من المسموح", "too large"),
    "verdict_switched": ("صحيح، والمفتاح غيّر الجواب", "right; the switch changed the answer"),
    "not_found_title": ("لا شيء هنا", "There is nothing here"),
    "not_found_more": ("ربما نقص شيء من العنوان.", "Perhaps a part of the address is missing."),
    "form_title": ("لم تعد الصفحة صالحة", "The page was too old"),
    "form_more": ("ارجع إلى القائمة وحاول من جديد.", "Go back to the menu and try again."),
    "error_title": ("حدث خطأ عندنا", "Something went wrong here"),
    "error_more": ("حاول من جديد بعد قليل.", "Try again in a moment."),
}  # fmt: skip


def say(key: str, lang: str, **values: object) -> str:
    return _SENTENCES[key][LANGUAGES.index(lang)].format_map(_Shown(values))


def product(code: str, lang: str) -> str:
    return _PRODUCTS[code][LANGUAGES.index(lang)]


def about_product(code: str, lang: str) -> str:
    return _PRODUCTS[code][2 + LANGUAGES.index(lang)]


def list_of(lines: Iterable[Line], lang: str) -> str:
    names = (f"{product(line.product, lang)} × {line.quantity}" for line in lines)
    return ("، " if lang == "ar" else ", ").join(names)


def money(amount: int, lang: str) -> str:
    """Dinar with its three decimals."""
    return f"{amount // 1000:,}.{amount % 1000:03d} {'د.ل' if lang == 'ar' else 'LYD'}"


class _Shown(dict[str, object]):
    """Braces without a value, as in an address, are shown as they are."""

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__(values)

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"
