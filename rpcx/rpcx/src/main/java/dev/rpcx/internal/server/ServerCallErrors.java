package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.PeerText;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.DeclaredErrors;
import dev.rpcx.internal.wire.ConnectionErrors;
import java.util.List;

/**
 * Makes errors that a server sends to its callers, on the native wire and on the classic wire, and errors that the
 * streams and stages of its handlers get. Each error has a code and a text, and says whether the handler has run.
 * Thread-safe.
 */
final class ServerCallErrors {
    /** Text of the error NOT_FOUND for a call of a method that the server does not publish. */
    static final String NOT_PUBLISHED = "no such service or method";

    /** Text of the error UNAVAILABLE for a call, if no thread can be started for its handler. */
    static final String NO_THREAD = "the server has no thread for the call";

    /** Text of the error HANDLER_FAILED for a call whose thread has failed before the call ended. */
    static final String THREAD_FAILED = "the server's thread failed before it could send the result";

    /** Text of the error OVERLOADED for a call whose reply cannot be charged. */
    static final String REPLY_NOT_KEPT = "the reply could not be kept: too many bytes of replies wait to be read";

    /** Beginning of the text of the error for a call whose result cannot be encoded. The reason follows it. */
    static final String UNSENDABLE = "the result cannot be sent: ";

    /** Name of what has failed, for the log: the handler of a call, or an interceptor. */
    static final String HANDLER = "the handler or an interceptor";

    /** Name of what has failed, for the log: the stream that a handler has returned. */
    static final String STREAM = "the stream of the handler";

    /** Name of what has failed, for the log: the writing of a result. */
    static final String RESULT = "the writing of the result";

    private static final String GONE = "the caller is gone";
    private static final String FAILED = "the handler failed";

    private ServerCallErrors() {}

    /** Returns the error for a call whose deadline passed before a thread began to work on the call. */
    static RPCXException late() {
        return RPCXException.refused(
                RPCXException.Code.DEADLINE_EXCEEDED, "the call's time was over before the handler started");
    }

    /**
     * Returns the error for a call whose arguments could not be read.
     *
     * @param t exception that was thrown while the arguments were read; an {@link RPCXException}, such as that of
     *     {@link #late}, is returned unchanged
     */
    static RPCXException unread(Throwable t) {
        return t instanceof RPCXException refused ? refused : unreadable(t);
    }

    /** Returns the error for a call that was cancelled before its handler started. */
    static RPCXException gone() {
        return RPCXException.refused(RPCXException.Code.CANCELLED, GONE);
    }

    /** Returns the error CANCELLED, with EXECUTED, that ends the incoming stream of a call that is given up. */
    static RPCXException goneDuringStream() {
        return new RPCXException(RPCXException.Code.CANCELLED, GONE);
    }

    /** Returns the error CANCELLED, with EXECUTED, for a stream or a stage that is still open when its call ends. */
    static RPCXException over() {
        return new RPCXException(RPCXException.Code.CANCELLED, "the call is over");
    }

    /**
     * Returns the error UNAVAILABLE, with NOT_EXECUTED, which says that the server is closing. A call whose handler is
     * not started for this reason ends with this error, and so does a classic connection.
     */
    static RPCXException closing() {
        return RPCXException.refused(RPCXException.Code.UNAVAILABLE, ConnectionErrors.SERVER_CLOSING);
    }

    /** Returns the error UNAVAILABLE, with NOT_EXECUTED, for a call for whose handler no thread can be started. */
    static RPCXException noThread() {
        return RPCXException.refused(RPCXException.Code.UNAVAILABLE, NO_THREAD);
    }

    /** Returns the error OVERLOADED, with NOT_EXECUTED, for a call whose handler is not admitted. */
    static RPCXException notAdmitted() {
        return RPCXException.refused(
                RPCXException.Code.OVERLOADED, "the server has more to do than it can finish in time");
    }

    /**
     * Returns the error HANDLER_FAILED, with the given {@code executed}, for a call whose thread has failed before the
     * call ended.
     */
    static RPCXException threadFailed(RPCXException.Executed executed) {
        return new RPCXException(RPCXException.Code.HANDLER_FAILED, THREAD_FAILED, executed, null);
    }

    /** Returns the error OVERLOADED, with the given {@code executed}, for a call whose reply cannot be charged. */
    static RPCXException replyNotKept(RPCXException.Executed executed) {
        return new RPCXException(RPCXException.Code.OVERLOADED, REPLY_NOT_KEPT, executed, null);
    }

    /**
     * Returns the error DEADLINE_EXCEEDED for a classic call that has not ended within its time. The error says MAYBE
     * if the call's handler may have run, and NOT_EXECUTED otherwise.
     *
     * @param time time of a classic call, with its unit
     */
    static RPCXException notEndedInTime(String time, boolean mayHaveRun) {
        return new RPCXException(
                RPCXException.Code.DEADLINE_EXCEEDED,
                "the call has not ended within the " + time + " that a classic call has",
                mayHaveRun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED,
                null);
    }

    /**
     * Returns an error with the given code, text and {@code executed}, for a call that its connection ends or refuses.
     */
    static RPCXException ended(RPCXException.Code code, String text, RPCXException.Executed executed) {
        return new RPCXException(code, text, executed, null);
    }

    /**
     * Returns the error for a call whose handler has thrown {@code thrown}. The error has the code, the text, the cause
     * and the details of {@code thrown}, and says EXECUTED.
     */
    static RPCXException thrownByHandler(RPCXException thrown) {
        return new RPCXException(thrown.code(), thrown.getMessage(), RPCXException.Executed.EXECUTED, thrown.getCause())
                .withDetails(thrown.details());
    }

    static RPCXException unreadable(Throwable e) {
        return RPCXException.refused(
                ThrowableText.isOfMemory(e) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                "the request cannot be read: " + ThrowableText.wireWords(e));
    }

    /**
     * Returns the error for a call whose handler, interceptor or stream has failed with an exception. If the exception
     * is an {@link RPCXException}, the error has the same code, message and details. Otherwise the code is
     * HANDLER_FAILED, and the message is that of the exception, unless {@link PeerText} replaces it. The error does not
     * name the exception's class, unless the method declares the exception: it then has the exception as a detail.
     *
     * <p>The error says NOT_EXECUTED if the method has interceptors, and the handler has not started. If the exception
     * is an {@link RPCXException}, it must also say NOT_EXECUTED itself, or leave this to the server. In all other
     * cases, the error says EXECUTED. If the method has interceptors, this method also prevents the handler from
     * starting later.
     */
    static RPCXException failed(Throwable thrown, ServerMethod method, HandledContext context) {
        return failed(thrown, hasRun(method, context), method.errors());
    }

    /**
     * Returns whether {@code error}, the error for a call that has failed with {@code thrown}, tells the caller all
     * that there is to tell. If not, the server has to log {@code thrown}. An {@link RPCXException} and an exception
     * that the method declares are the answer of a handler or an interceptor, but a cause is never sent.
     */
    static boolean tellsAll(Throwable thrown, RPCXException error) {
        try {
            Throwable t = RPCXException.cause(thrown);
            return t.getCause() == null
                    && (t instanceof RPCXException || !error.details().isEmpty());
        } catch (Throwable speechless) {
            return false;
        }
    }

    /**
     * Returns the error for a call whose result cannot be sent. The error says whether the handler has run, because an
     * interceptor can make a result without the handler.
     */
    static RPCXException unsendable(RPCXException.Code code, String text, ServerMethod method, HandledContext context) {
        return ended(code, text, hasRun(method, context));
    }

    private static boolean hasRun(ServerMethod method, HandledContext context) {
        return method.chain() == null || context.barHandler();
    }

    /**
     * Returns the error for a call whose handler has thrown an exception. The error says that the handler has run. If
     * the exception is an {@link RPCXException}, the error has the same code and message. Otherwise the code is
     * HANDLER_FAILED, and the message is that of the exception, unless {@link PeerText} replaces it. The error does not
     * name the exception's class.
     */
    static RPCXException failed(Throwable thrown) {
        return failed(thrown, true, DeclaredErrors.NONE);
    }

    private static RPCXException failed(Throwable thrown, boolean hasRun, DeclaredErrors errors) {
        try {
            return asSeenByCaller(thrown, hasRun, errors);
        } catch (Throwable worse) {
            // A method of the exception itself has thrown. The caller nevertheless gets an answer.
            return ended(RPCXException.Code.HANDLER_FAILED, FAILED, hasRun);
        }
    }

    private static RPCXException ended(RPCXException.Code code, String text, boolean hasRun) {
        return hasRun ? new RPCXException(code, text) : RPCXException.refused(code, text);
    }

    private static RPCXException asSeenByCaller(Throwable thrown, boolean hasRun, DeclaredErrors errors) {
        Throwable t = RPCXException.cause(thrown);
        if (t instanceof RPCXException e) {
            boolean isRefusal = e.isExecutedOpen() || e.executed() == RPCXException.Executed.NOT_EXECUTED;
            RPCXException error = ended(e.code(), e.getMessage(), hasRun || !isRefusal);
            return e.details().isEmpty() ? error : error.withDetails(passedOn(e.details()));
        }
        String message = PeerText.of(t);
        RPCXException error = ended(RPCXException.Code.HANDLER_FAILED, message == null ? FAILED : message, hasRun);
        RPCXException.Detail declared = errors.detailOf(t);
        return declared == null ? error : error.withDetails(List.of(declared));
    }

    /**
     * Returns the details of an exception that a handler or an interceptor passes on. An exception that another service
     * has declared does not count as declared here, since this method may declare another one of that name.
     */
    private static List<RPCXException.Detail> passedOn(List<RPCXException.Detail> details) {
        return details.stream()
                .map(each -> each.isDeclared() ? new RPCXException.Detail(each.name(), each.message(), false) : each)
                .toList();
    }
}
