"""marshmallow schemas and fields that load in a third of the time, for schemas as plain as ours.

marshmallow's own way allows for renamed, dotted and partial fields, hooks and much else at every load. Here a
field has one name and a schema no hooks; what loads and what fails is the same, and a test compares the two.
"""

from collections.abc import Mapping
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, missing


class QuickField(fields.Field[Any]):
    default_error_messages = {"required": "Is required.", "null": "Must not be null."}  # noqa: RUF012  marshmallow's way

    def deserialize(
        self, value: Any, attr: str | None = None, data: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Any:
        if value is missing:
            if self.required:
                raise self.make_error("required")
            return missing
        if value is None:
            if not self.allow_none:
                raise self.make_error("null")
            return None
        output = self._deserialize(value, attr, data, **kwargs)
        if self.validators:
            self._validate(output)
        return output


class QuickSchema(Schema):
    class Meta:
        unknown = EXCLUDE

    error_messages = {"type": "Must be an object."}  # noqa: RUF012  marshmallow's way

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._by_name = tuple(self.load_fields.items())

    def load(self, data: Any, **_: Any) -> dict[str, Any]:
        if type(data) is not dict:
            raise ValidationError(self.error_messages["type"], data=data)
        valid: dict[str, Any] = {}
        errors: dict[str, Any] = {}
        for name, field in self._by_name:
            try:
                value = field.deserialize(data.get(name, missing), name, data)
            except ValidationError as error:
                errors[name] = error.messages
            else:
                if value is not missing:
                    valid[name] = value
        if errors:
            raise ValidationError(errors, data=data, valid_data=valid)
        return valid
