package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.StreamReceiver;
import io.netty.buffer.ByteBuf;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * A call at a server, as a list. It decides in which order the steps of a call are taken, and which of them ends it:
 *
 * <ol>
 *   <li>Admit, on the event loop: {@link ServerConnection} has {@link RequestReader} read what stands before the
 *       arguments, and {@link Admission} give the call a place and let its handler in. Then {@link ConnectionThreads}
 *       has a thread for it, which comes here by {@link #run}.
 *   <li>Decode, in {@link #decode}.
 *   <li>Run, in {@link #handle}: interceptors and handler, by {@link ServerMethod#invoke}. A result that comes later
 *       goes on at {@link #onResult}, on the thread that brings it.
 *   <li>Encode, in {@link #finish}: the handler leaves {@link Admission}, and {@link ReplyWriter} writes.
 *   <li>Reply, by {@link SentReplies}, or at once on the event loop.
 * </ol>
 *
 * <p>No object of this class is made: what differs between methods is in {@link ServerMethod}, what belongs to a
 * connection in the objects that are named above, and a call knows both. Each method here is called by the one thread
 * that has the call at that time, which is the event loop where the handlers of the method run there. What keeps such a
 * thread and those that end the call otherwise apart is in {@link ServerCall}, which also catches what is thrown here.
 */
final class ServerSteps {
    private ServerSteps() {}

    /** Runs the call on its handler's thread, or gives it back to the event loop where its caller does not read. */
    static void run(ServerCall call, long nowNanos) {
        if (call.connection.isCongested(call.method()) && call.mayWait()) {
            Admission.leave(call, false);
            call.postponeRequested = true;
            // the call goes the way of a reply: once it is in the outbox, no failure of this thread can lose it
            call.connection.send(call);
        } else {
            handle(call, call.body, nowNanos);
        }
    }

    /** Runs the handler with the request in this buffer, on the current thread. */
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

    /** @return arguments of the handler; null if the call has ended */
    private static Object @Nullable [] decode(ServerCall call, ByteBuf request, long nowNanos) {
        if (call.isCancelled()) {
            // the request is not even decoded
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
        // leaveNow does not ask whether threads run, since some may deliver incoming items already: the handler counts
        // no longer, and from here on only the stream uses the call's place
        Admission.leaveNow(call, true);
        if (result instanceof Flow.Publisher<?> publisher) {
            call.connection.stream(call, publisher);
        } else {
            finish(call, null, failed(call, new IllegalStateException(ServerMethod.NO_STREAM)));
        }
    }

    /** Goes on with a result that has come later. */
    static void onResult(ServerCall call, @Nullable Object value, @Nullable Throwable thrown) {
        ServerMethod called = call.method();
        if (thrown == null && value instanceof CompletionStage<?> stage && called.chain() != null) {
            // an interceptor has gone on when a stage ended, and has brought another stage, whose result is the call's
            call.await(called.brought(stage, call.context()));
            return;
        }
        finish(call, value, thrown == null ? null : failed(call, thrown));
    }

    /** Makes the error that the caller sees for a failure of this call. Called before the call is finished. */
    private static RPCXException failed(ServerCall call, Throwable thrown) {
        return CallErrors.failed(thrown, call.method(), call.context());
    }

    /** Encodes the result or the error of the call, and sends it. Any thread, once. */
    private static void finish(ServerCall call, @Nullable Object result, @Nullable RPCXException error) {
        // read here: once the call has been sent its object may serve another one
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
