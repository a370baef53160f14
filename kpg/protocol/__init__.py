"""The messages of kpg: typed, versioned, strictly decoded JSON, without any I/O.

    definitions                  how a message class gets its name on the wire
    strict_decoder, value_codec  JSON values to Python, by annotations
    message_codec                messages to text and back
    requests, replies, parts     the protocol of the server, version 1
    error_messages               errors as parts of messages and back

Ranks of a cluster and Spark tasks define their own messages with the same decoder.
"""
