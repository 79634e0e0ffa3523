package dev.rpcx.internal.call;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.CodecException;
import dev.rpcx.internal.ThrowableText;

/** Makes the errors of streams, for both sides. Thread-safe. */
public final class StreamErrors {
    /**
     * Text of the error OVERLOADED for a stream whose connection, or whose server or client, already has the maximum
     * number of streams.
     */
    public static final String TOO_MANY = "too many streams on this connection or server";

    private StreamErrors() {}

    /** Returns the error OVERLOADED for a stream to send that is one too many. The error says EXECUTED. */
    static RPCXException tooMany() {
        return new RPCXException(RPCXException.Code.OVERLOADED, TOO_MANY);
    }

    /**
     * Returns the error for a stream with an item that cannot be decoded. The code is INVALID, or OVERLOADED if memory
     * is lacking. The error says EXECUTED.
     */
    static RPCXException unreadableItem(Throwable e) {
        return new RPCXException(
                ThrowableText.isOfMemory(e) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                "an item cannot be read: " + ThrowableText.words(e),
                RPCXException.Executed.EXECUTED,
                e);
    }

    /**
     * Returns the error TOO_LARGE for a stream with an item that is too large for its codec. The error says EXECUTED.
     */
    static RPCXException unsendableItem(CodecException e) {
        return new RPCXException(RPCXException.Code.TOO_LARGE, "an item cannot be sent: " + e.getMessage());
    }

    /**
     * Returns the error TOO_LARGE for a stream with an item that is too large for the peer. The error says EXECUTED.
     */
    static RPCXException largeItem(int bytes, int maxBytes) {
        return new RPCXException(
                RPCXException.Code.TOO_LARGE, "an item of " + bytes + " bytes (expected: at most " + maxBytes + ")");
    }

    /**
     * Returns the error HANDLER_FAILED for a stream whose publisher makes more items than requested. The error says
     * EXECUTED.
     */
    static RPCXException unrequestedItem() {
        return new RPCXException(
                RPCXException.Code.HANDLER_FAILED,
                "the publisher makes items that nobody has asked for (expected: at most as many as request(n) asks for,"
                        + " as dev.rpcx.Publishers and java.util.concurrent.SubmissionPublisher make them)");
    }

    /**
     * Returns the error HANDLER_FAILED for a stream whose publisher ends it while another thread of the publisher makes
     * an item. The error says EXECUTED.
     */
    static RPCXException endWithinItem() {
        return new RPCXException(
                RPCXException.Code.HANDLER_FAILED,
                "the publisher ends the stream while another of its threads makes an item (expected: one signal after"
                        + " the other, as dev.rpcx.Publishers and java.util.concurrent.SubmissionPublisher give them)");
    }

    /** Returns the error OVERLOADED for a stream with an item that cannot be charged. The error says EXECUTED. */
    static RPCXException unkeptItem() {
        return new RPCXException(
                RPCXException.Code.OVERLOADED,
                "an item could not be kept: too many bytes wait to be read on this connection or server");
    }

    /** Returns the error OVERLOADED for a stream if no thread can read its items. The error says EXECUTED. */
    static RPCXException noReader(Throwable noThread) {
        return new RPCXException(
                RPCXException.Code.OVERLOADED,
                "no thread can be started to read the items of a stream: " + ThrowableText.words(noThread),
                RPCXException.Executed.EXECUTED,
                noThread);
    }

    /**
     * Returns the error CANCELLED for a stream whose thread was interrupted while it waited for an item. The error says
     * EXECUTED.
     */
    static RPCXException interruptedReader() {
        return new RPCXException(
                RPCXException.Code.CANCELLED, "the thread that reads the items of a stream was interrupted");
    }

    /**
     * Returns the given error without its text, for use if the text cannot be charged. The code and {@code executed}
     * stay the same.
     */
    static RPCXException withoutText(RPCXException error) {
        return new RPCXException(error.code(), "", error.executed(), null);
    }
}
