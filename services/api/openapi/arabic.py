"""The reference page in Arabic: its texts, and those of the OpenAPI document that it shows.

The document itself stays English, and so do names, codes and examples on the page.
"""

from dataclasses import fields, is_dataclass, replace
from importlib.resources import files
from typing import Any

from services.api.openapi.markdown import Section, split_sections
from services.api.openapi.page import ReferencePage

TEXTS = {
    "Mizan": "ميزان",
    "API reference": "مرجع API",
    "Skip to content": "الانتقال إلى المحتوى",
    "OpenAPI 3.1 document": "مستند OpenAPI 3.1",
    "Documentation": "التوثيق",
    "Postman collection": "مجموعة Postman",
    "Contents": "المحتويات",
    "Guide": "الدليل",
    "Overview": "نظرة عامة",
    "Payment intents": "طلبات الدفع",
    "Create": "إنشاء",
    "Retrieve": "استرجاع",
    "The payment intent": "طلب الدفع",
    "Afterwards": "بعد الدفع",
    "Events": "الأحداث",
    "Base address": "العنوان الأساسي",
    "Path parameters": "معاملات المسار",
    "Request body": "متن الطلب",
    "Responses": "الردود",
    "Status": "الحالة",
    "When": "متى",
    "When, and the body": "متى، والمتن",
    "Request": "الطلب",
    "Response": "الرد",
    "Every response with an intent carries it under `data`, always with all of these fields.": "كل رد فيه طلب دفع يحمله تحت `data`، وفيه دائمًا كل هذه الحقول.",
    "Fields of a payment intent": "حقول طلب الدفع",
    "Event": "الحدث",
    "Sent when": "متى يُرسل",
    "Body of a delivery": "متن عملية التسليم",
    "Delivery, signed with the secret": "عملية تسليم موقّعة بالسر",
    "The header `Retry-After` says in how many seconds to come back.": "تذكر الترويسة `Retry-After` عدد الثواني قبل المحاولة التالية.",
    "Generated from the OpenAPI document, which is generated from the code of the API.": "أُنشئت هذه الصفحة من مستند OpenAPI، وهو مُنشأ من شيفرة API.",
    "Name and type": "الاسم والنوع",
    "Meaning": "المعنى",
    "required": "مطلوب",
    "optional": "اختياري",
    "Copy": "نسخ",
    "Copied": "تم النسخ",
    "Selected: copy it with your keyboard": "تم التحديد: انسخه بلوحة المفاتيح",
    # Of the OpenAPI document.
    "Mizan API": "واجهة ميزان (API)",
    "Accept payments in Libyan dinar.": "استقبل المدفوعات بالدينار الليبي.",
    "Create a payment intent": "إنشاء طلب دفع",
    "Retrieve a payment intent": "استرجاع طلب دفع",
    "Creates the intent of this `merchant_reference`, or returns it if it exists: a reference has one intent, however often it is sent. Unknown fields are ignored. An optional field that is null counts as not sent.": "يُنشئ طلب الدفع لهذا `merchant_reference`، أو يعيده إن كان موجودًا: للرقم المرجعي طلب دفع واحد مهما تكرّر إرساله. تُهمل الحقول غير المعروفة. والحقل الاختياري الذي قيمته null يُعدّ غير مُرسل.",
    "string": "نص",
    "integer": "عدد صحيح",
    "object": "كائن",
    "object or null": "كائن أو null",
    "string or null": "نص أو null",
    "string, URL": "نص، رابط",
    "string, URL or null": "نص، رابط، أو null",
    "string, UUID": "نص، UUID",
    "object of strings or null": "كائن من نصوص أو null",
    "string, ISO 8601 date-time": "نص، تاريخ ووقت بصيغة ISO 8601",
    "string, ISO 8601 date-time or null": "نص، تاريخ ووقت بصيغة ISO 8601، أو null",
    "1 to 255 characters": "من 1 إلى 255 حرفًا",
    "1,000 to 1,000,000,000": "من 1,000 إلى 1,000,000,000",
    "only `LYD`": "القيمة `LYD` فقط",
    "at most 20 keys": "20 مفتاحًا على الأكثر",
    "keys up to 40 characters": "طول المفتاح حتى 40 حرفًا",
    "values up to 255 characters": "طول القيمة حتى 255 حرفًا",
    "one of `requires_payment_method`, `processing`, `succeeded`, `canceled`": "إحدى القيم: `requires_payment_method`، `processing`، `succeeded`، `canceled`",
    "one of `payment_intent.succeeded`, `payment_intent.canceled`": "إحدى القيمتين: `payment_intent.succeeded`، `payment_intent.canceled`",
    "Your own reference of the order. Unique per application: it is the idempotency key.": "رقمك المرجعي للطلبية. فريد في كل تطبيق: هو مفتاح منع التكرار.",
    "In the minor unit of the currency. LYD has 3 decimal places: 1000 is one dinar.": "بأصغر وحدة من العملة. للدينار الليبي (LYD) 3 منازل عشرية: 1000 تعني دينارًا واحدًا.",
    "ISO 4217 code of the currency.": "رمز العملة بحسب ISO 4217.",
    "Who pays, in your own terms.": "من يدفع، بتسميتك أنت.",
    "Your own id of the customer, echoed back.": "معرّف الزبون لديك، ويعود كما أُرسل.",
    "What the customer is paying for; shown on the hosted checkout.": "ما يدفع الزبون ثمنه؛ يظهر في صفحة الدفع.",
    "Absolute http or https URL. The checkout sends the customer there after paying; an expired checkout links to it. Nothing is appended, so put your own order identifier in it.": "رابط كامل بـ http أو https. تعيد صفحة الدفع الزبون إليه بعد الدفع، وتضع رابطًا إليه إذا انتهت صلاحيتها. لا يُضاف إليه شيء، فضع فيه معرّف طلبيتك.",
    "Your own key-value pairs, returned unchanged.": "أزواج مفتاح وقيمة خاصة بك، تعود كما هي.",
    "When the checkout stops taking payments, with Z or an offset. More than 5 minutes and less than 31 days ahead, which is checked only on creation. Default: 24 hours after creation.": "متى تتوقف صفحة الدفع عن قبول الدفع، مع Z أو فرق التوقيت. بعد أكثر من 5 دقائق وأقل من 31 يومًا، ويُفحص ذلك عند الإنشاء فقط. القيمة الافتراضية: 24 ساعة بعد الإنشاء.",
    "The intent was created.": "أُنشئ طلب الدفع.",
    "This `merchant_reference` already has an intent. It is returned unchanged, whatever its status.": "لهذا `merchant_reference` طلب دفع من قبل. يعود كما هو، أيًّا كانت حالته.",
    "A credential is missing or invalid. The API key is checked first: `error` is about the key, `message` about the access token.": "بيانات الاعتماد ناقصة أو غير صالحة. يُفحص مفتاح API أولًا: `error` عن المفتاح، و`message` عن رمز الوصول.",
    "The body took longer than 10 seconds to arrive. The create can be sent again.": "استغرق وصول المتن أكثر من 10 ثوانٍ. يمكن إرسال طلب الإنشاء من جديد.",
    "The body has more than 64 KiB.": "حجم المتن أكبر من 64 كيلوبايت.",
    "The request fails validation. A repeated create must pass it too.": "لم يجتز الطلب التحقق. وعلى الإنشاء المكرّر أن يجتازه أيضًا.",
    "The address exists, but not with this method.": "العنوان موجود، لكن ليس بهذا الفعل (method).",
    "Your application exceeds its rate limit.": "تجاوز تطبيقك الحد المسموح من الطلبات.",
    "An error on our side. Send it again: its reference prevents a second intent.": "خطأ لدينا. أرسل الطلب من جديد: رقمه المرجعي يمنع إنشاء طلب دفع ثانٍ.",
    "The service is temporarily unavailable. Send it again: its reference prevents a second intent.": "الخدمة غير متاحة مؤقتًا. أرسل الطلب من جديد: رقمه المرجعي يمنع إنشاء طلب دفع ثانٍ.",
    "Returns the current state of an intent of your application. Call it when a webhook arrives and when the customer returns. Fulfil the order only when `status` is `succeeded` and the amount is right.": "يعيد الحالة الحالية لطلب دفع يخص تطبيقك. استدعِه عند وصول إشعار ويب هوك وعند عودة الزبون. لا تسلّم ما بيع إلا إذا كانت `status` هي `succeeded` وكان المبلغ صحيحًا.",
    "The intent's `uuid`.": "قيمة `uuid` لطلب الدفع.",
    "The current intent. This response, not a webhook, is the source of truth.": "طلب الدفع بحالته الحالية. هذا الرد هو المرجع الموثوق، لا إشعار ويب هوك.",
    "The intent was created by another application.": "أنشأ طلبَ الدفع تطبيقٌ آخر.",
    "No intent has this uuid.": "لا يوجد طلب دفع بهذا المعرّف (uuid).",
    "An error on our side. Ask again.": "خطأ لدينا. أعد الطلب.",
    "The service is temporarily unavailable. Ask again.": "الخدمة غير متاحة مؤقتًا. أعد الطلب.",
    "Id of the intent. Store it: you need it to retrieve the intent.": "معرّف طلب الدفع. احفظه: تحتاج إليه لاسترجاع الطلب.",
    "Our short reference, shown on the receipt in capitals.": "رقمنا المرجعي القصير، يظهر على الإيصال بأحرف كبيرة.",
    "Your own reference, as given at creation.": "رقمك المرجعي كما أُعطي عند الإنشاء.",
    "Minor units: 1000 is one dinar.": "بأصغر وحدة: 1000 تعني دينارًا واحدًا.",
    "ISO 4217 code. Currently `LYD` only.": "رمز بحسب ISO 4217. حاليًا `LYD` فقط.",
    "Where the intent stands. Fulfil the order only when it is `succeeded`.": "حالة طلب الدفع. لا تسلّم ما بيع إلا إذا كانت `succeeded`.",
    "What the customer is paying for.": "ما يدفع الزبون ثمنه.",
    "Always an object, also when none was sent.": "كائن دائمًا، حتى إن لم يُرسل.",
    "As sent; null when none was sent.": "كما أُرسل؛ وقيمته null إن لم يُرسل.",
    "Where the checkout sends the customer back.": "حيث تعيد صفحة الدفع الزبون.",
    "Your key-value pairs as sent; null when none were sent.": "أزواجك من مفتاح وقيمة كما أُرسلت؛ والقيمة null إن لم تُرسل.",
    "When the checkout stops taking payments.": "متى تتوقف صفحة الدفع عن قبول الدفع.",
    "The hosted checkout: send the customer there. Append `?lang=en` for English.": "صفحة الدفع لدينا: وجّه الزبون إليها. أضف `?lang=en` لعرضها بالإنجليزية.",
    "When the intent was created.": "وقت إنشاء طلب الدفع.",
    "When the intent last changed.": "وقت آخر تغيير لطلب الدفع.",
    "The intent is paid, also when a late payment arrives on a canceled intent.": "تم الدفع، وكذلك عندما تصل دفعة متأخرة إلى طلب انتهت صلاحيته.",
    "The intent expired unpaid.": "انتهت صلاحية طلب الدفع دون دفع.",
    "Id of the delivery, kept across retries and resends: drop repeats by it.": "معرّف عملية التسليم، يبقى نفسه في كل المحاولات وعند إعادة الإرسال: تجاهل به المكرّر.",
    "What happened.": "ما الذي حدث.",
    "What it happened to. No amount and no status.": "لمن حدث. دون مبلغ ودون حالة.",
    "The intent's uuid: retrieve it to learn its status and amount.": "معرّف طلب الدفع (uuid): استرجعه لتعرف حالته ومبلغه.",
}  # fmt: skip

_TRANSLATED = frozenset({"title", "summary", "description", "type", "limits", "sent_when"})


def translate(text: str) -> str:
    """Return the Arabic text, or the English one if it has no translation."""
    return TEXTS.get(text, text)


def make_arabic_page(page: ReferencePage) -> ReferencePage:
    """Translate the page. Sections of the guide keep their English slugs, so that a link works in both languages."""
    arabic = split_sections(files(__package__).joinpath("guide.ar.md").read_text("utf-8"))
    overview, *guide, webhooks, errors = (
        Section(english.slug, section.title, section.html)
        for english, section in zip(
            (page.overview, *page.guide, page.webhooks, page.errors), arabic, strict=True
        )
    )
    translated: ReferencePage = _translate(page)
    return replace(translated, overview=overview, guide=guide, webhooks=webhooks, errors=errors)


def _translate(value: Any, *, is_text: bool = False) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            each.name: _translate(getattr(value, each.name), is_text=each.name in _TRANSLATED)
            for each in fields(value)
        }
        return replace(value, **changed)
    if isinstance(value, list):
        return [_translate(each, is_text=is_text) for each in value]
    return translate(value) if is_text else value
