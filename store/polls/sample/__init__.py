"""The sample assistants: invented answers about invented products, plainly labelled as such.

``reply`` makes up what an assistant would send, as a pure function of the category, the assistant's
name and the time, so that the same command always fills a history with the same bytes. Every
product is invented and every domain ends in ``.example``. How an answer comes about:

1. The title's head noun phrase names a *family* ("free project management software for small
   teams" → "project management"), the words of the family a *kind* ("work").
2. Family, last word of the family and kind each own some products; together they are the
   category's pool. Each product has a strength in the category.
3. An assistant adds its own taste and a little drift: slow functions of the days since ``EPOCH``.
4. The best five are put into words in the assistant's voice. What is praised is a property of the
   product, so that two assistants praise the same things.
"""

from store.polls.sample.replies import SampleReply, reply

__all__ = ["SampleReply", "reply"]
