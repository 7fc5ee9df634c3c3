"""Wire shapes of changes, one struct for each JSON object."""

from typing import Annotated

from msgspec import Meta, field

from store.web.shapes import Api, Date, JsonObject, Page, Time


class Change(JsonObject, frozen=True, kw_only=True):
    """A flip of one model's #1 in one category."""

    id: Annotated[str, Meta(description="Stable: the id of the poll that brought the change.")]
    slug: Annotated[str, Meta(description="Category slug.")]
    title: str
    model: Annotated[str, Meta(description="The model that flipped.")]
    from_: Annotated[str, Meta(description="Previous #1 product.")] = field(name="from")
    to: Annotated[str, Meta(description="New #1 product.")]
    reason: Annotated[str | None, Meta(description="The model's own reason for the new #1.")]
    from_date: Date
    to_date: Date
    confirmed: Annotated[bool, Meta(description="The model's next answer, on a later day, agreed.")]
    served_model_from: Annotated[
        str | None,
        Meta(description="Its served version before, if that changed between the two answers."),
    ]
    served_model_to: Annotated[str | None, Meta(description="Its served version since then.")]
    page: Page
    api: Api


class LeaderChange(JsonObject, frozen=True, kw_only=True):
    """Another product came to lead a merged ranking, alone and by more than chance."""

    slug: Annotated[str, Meta(description="Category slug.")]
    title: str
    from_: Annotated[str, Meta(description="The product that led alone before.")] = field(
        name="from"
    )
    to: Annotated[str, Meta(description="The product that leads alone now.")]
    from_date: Annotated[Date, Meta(description="The last day on which the one before did.")]
    to_date: Annotated[Date, Meta(description="The first day on which the new one did.")]
    answers: Annotated[int, Meta(ge=1, description="Answers that show it.")]
    model: Annotated[
        str | None,
        Meta(
            description="The model that brought over half of it and whose served version changed "
            "meanwhile, if one did; that is no proof of a cause."
        ),
    ]
    served_model_from: Annotated[str | None, Meta(description="Its served version before.")]
    served_model_to: Annotated[str | None, Meta(description="Its served version since then.")]
    page: Page
    api: Api


class ChangeList(JsonObject, frozen=True, kw_only=True):
    """The newest changes of the models' #1 picks, and of the merged rankings' leaders."""

    last_checked: Time | None
    tracked: Annotated[int, Meta(ge=0, description="Categories with a successful poll.")]
    count: Annotated[int, Meta(ge=0, description="Changes listed here, 1,000 at most.")]
    total: Annotated[int, Meta(ge=0, description="Changes ever seen.")]
    changes: Annotated[list[Change], Meta(description="Newest first.")]
    leaders: Annotated[
        list[LeaderChange],
        Meta(
            description="Changes of a merged ranking's leader, newest first, 1,000 at most. "
            "`since`, `topic` and `slug` narrow them; the rest is about `changes` alone. They are "
            "found late, or never: an empty list does not say that nothing changed."
        ),
    ]
