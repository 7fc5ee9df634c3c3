"""The words and opinions from which the shipped history was made: invented, no real product.

``reply`` makes up what an assistant would send, as a pure function of the category, the assistant's
name and the time, and stands in for :func:`store.polls.sample.reply` while ``history.fill`` polls.
Every product is invented and every domain ends in ``.example``. How an answer comes about:

1. The title's head noun phrase names a *family* ("free project management software for small
   teams" → "project management"), the words of the family a *kind* ("work").
2. Family, last word of the family and kind each own some products; together they are the
   category's pool. Each product has a strength in the category.
3. An assistant adds its own taste and a little drift: slow functions of the days since ``EPOCH``.
4. The best five are put into words in the assistant's voice. What is praised is a property of the
   product, so that two assistants praise the same things.
"""

from sample.replies import reply

__all__ = ["reply"]
