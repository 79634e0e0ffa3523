package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.StreamReceiver;
import io.netty.buffer.ByteBuf;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * Takes a call at a server through its steps:
 *
 * <ol>
 *   <li>Admit, on the event loop: {@link ServerConnection} has {@link RequestReader} read what precedes the arguments,
 *       and has {@link Admission} give the call a place and admit its handler. Then {@link ConnectionThreads} gives the
 *       call a thread, which calls {@link #run}.
 *   <li>Decode, in {@link #decode}: the thread reads the arguments.
 *   <li>Run, in {@link #handle}: {@link ServerMethod#invoke} runs the interceptors and the handler. If the result comes
 *       later, the thread that brings it continues in {@link #onResult}.
 *   <li>Encode, in {@link #finish}: {@link Admission} stops counting the handler, and {@link ReplyWriter} writes the
 *       reply.
 *   <li>Reply: {@link SentReplies} sends the reply, unless {@link #finish} runs on the event loop: then the connection
 *       sends the reply immediately.
 * </ol>
 *
 * <p>There are no objects of this class. Each method is called by the one thread that has the call at that time: the
 * handler's thread, the thread that completes a stage, or the event loop. {@link ServerCall} coordinates this thread
 * with threads that end the call in another way, and catches what is thrown here.
 */
final class ServerSteps {
    private ServerSteps() {}

    /**
     * Runs the call on its handler's thread. If the caller does not read what is sent to it, and the call may wait,
     * gives the call back to the event loop instead.
     */
    static void run(ServerCall call, long nowNanos) {
        if (call.connection.isCongested(call.method()) && call.mayWait()) {
            Admission.leave(call, false);
            call.postponeRequested = true;
            // the call is put into the outbox, like a reply: if this thread fails later, the call is not lost
            call.connection.send(call);
        } else {
            handle(call, call.body, nowNanos);
        }
    }

    /** Runs the handler on the calling thread. {@code request} contains the bytes of the request. */
    static void handle(ServerCall call, ByteBuf request, long nowNanos) {
        Object[] arguments = decode(call, request, nowNanos);
        if (arguments == null) {
            return;
        }
        if (!call.enter()) {
            finish(call, null, CallErrors.gone());
            return;
        }
        ServerMethod called = call.method();
        Object result = null;
        Throwable thrown = null;
        try {
            result = called.invoke(arguments, call.metadata(), call.context());
        } catch (Throwable t) {
            thrown = t;
        } finally {
            call.exit();
        }
        if (thrown != null) {
            finish(call, null, failed(call, thrown));
        } else if (called.returnsStream()) {
            stream(call, result);
        } else if (result instanceof CompletionStage<?> stage) {
            call.await(stage);
        } else {
            finish(call, result, null);
        }
    }

    /**
     * Reads the arguments of the handler. If they cannot be read, or the handler must not start any more, ends the
     * call.
     *
     * @return the arguments; null if the call has ended
     */
    private static Object @Nullable [] decode(ServerCall call, ByteBuf request, long nowNanos) {
        if (call.isCancelled()) {
            // nobody waits for the result, so the request is not decoded
            finish(call, null, CallErrors.gone());
            return null;
        }
        if (call.connection.isCutOff()) {
            finish(call, null, CallErrors.closing());
            return null;
        }
        call.uncharged = 0;
        try {
            if (call.deadlineNanos() - nowNanos <= 0) {
                throw CallErrors.late();
            }
            Object[] arguments = call.method().parameters().read(request, call);
            StreamReceiver items = call.receiver;
            if (items == null) {
                return arguments;
            }
            call.giveUpBody();
            return new Object[] {items};
        } catch (Throwable t) {
            finish(call, null, CallErrors.unread(t));
            return null;
        }
    }

    private static void stream(ServerCall call, @Nullable Object result) {
        // From here on only the stream uses the call's place. leaveNow and not leave: leave would go on counting the
        // handler while other threads deliver incoming items.
        Admission.leaveNow(call, true);
        if (result instanceof Flow.Publisher<?> publisher) {
            call.connection.stream(call, publisher);
        } else {
            finish(call, null, failed(call, new IllegalStateException(ServerMethod.NO_STREAM)));
        }
    }

    /**
     * Continues a call whose result has come after its handler had returned.
     *
     * @param value the result; null if {@code thrown} is not null
     * @param thrown why there is no result; null if there is one
     */
    static void onResult(ServerCall call, @Nullable Object value, @Nullable Throwable thrown) {
        ServerMethod called = call.method();
        if (thrown == null && value instanceof CompletionStage<?> stage && called.chain() != null) {
            // an interceptor has waited for another stage before it proceeded: the value is the handler's stage, whose
            // result is the result of the call
            call.await(called.brought(stage, call.context()));
            return;
        }
        finish(call, value, thrown == null ? null : failed(call, thrown));
    }

    /** Makes the error that the caller sees for a failure of this call. Called before the call is finished. */
    private static RPCXException failed(ServerCall call, Throwable thrown) {
        return CallErrors.failed(thrown, call.method(), call.context());
    }

    /** Encodes the result or the error of the call, and sends it. Any thread may call this, once for each call. */
    private static void finish(ServerCall call, @Nullable Object result, @Nullable RPCXException error) {
        // these are read now: once the call has been sent, its object may serve another call
        ServerConnection connection = call.connection;
        ServerMethod failedNotice = error != null && call.notice ? call.method() : null;
        Admission.leave(call, error == null);
        call.leaveHandler();
        call.clearBody();
        if (error == null) {
            ReplyWriter.write(call, result);
        } else {
            ReplyWriter.writeError(call, error);
        }
        if (connection.inLoop()) {
            connection.sendNow(call);
        } else {
            ReplyWriter.charge(call);
            connection.sentReplies.send(call);
        }
        if (failedNotice != null && error != null) {
            connection.noticeFailed(failedNotice, error);
        }
    }
}
