package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.StreamReceiver;
import io.netty.buffer.ByteBuf;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * Takes a call through its steps at the server:
 *
 * <ol>
 *   <li>Admit: on the event loop, {@link RequestReader} reads what precedes the arguments, and {@link Admission} checks
 *       whether there is room for the call. {@link ConnectionThreads} gives the admitted call to a thread, which calls
 *       {@link #run}. If the handler runs on the event loop, the event loop calls {@link #handle} instead.
 *   <li>Decode: {@link #decode} reads the arguments.
 *   <li>Run: {@link #handle} runs the interceptors and the handler. If the result comes later, the thread that brings
 *       the result calls {@link #onResult}.
 *   <li>Encode: {@link #finish} calls {@link Admission#leave}, which stops counting the handler. Then {@code finish}
 *       calls {@link ReplyWriter}, which writes the reply.
 *   <li>Reply: {@link SentReplies} sends the reply. If {@link #finish} runs on the event loop, the
 *       {@link ServerConnection} sends the reply instead.
 * </ol>
 *
 * <p>All methods are static. At any time, only one thread takes a call through these steps: the handler's thread, the
 * thread that completes a stage, or the event loop. {@link ServerCall} coordinates this thread with threads that end
 * the call in another way, such as by a cancel. If a method throws, {@link ServerCall} makes the event loop end the
 * call. If {@link #onResult} throws, {@link PendingResult} does so.
 */
final class ServerSteps {
    private ServerSteps() {}

    /**
     * Runs the call on its handler's thread. But if the client does not read what the server sends, and the call may be
     * postponed, this method gives the call back to the event loop, which postpones it.
     */
    static void run(ServerCall call, long nowNanos) {
        if (call.connection.isCongested(call.method()) && call.mayWait()) {
            Admission.leave(call, false);
            call.postponeRequested = true;
            // The call itself goes into the outbox, from which the event loop takes it and postpones it. So the call is
            // not lost if this thread fails later.
            call.connection.send(call);
        } else {
            handle(call, call.body, nowNanos);
        }
    }

    /** Reads the arguments from {@code request}, and runs the interceptors and the handler on the calling thread. */
    static void handle(ServerCall call, ByteBuf request, long nowNanos) {
        Object[] arguments = decode(call, request, nowNanos);
        if (arguments == null) {
            return;
        }
        if (!call.enter()) {
            finish(call, null, ServerCallErrors.gone());
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
            fail(call, thrown);
        } else if (called.returnsStream()) {
            stream(call, result);
        } else if (result instanceof CompletionStage<?> stage) {
            call.await(stage);
        } else {
            finish(call, result, null);
        }
    }

    /**
     * Reads the arguments of the handler. Ends the call with an error if the arguments cannot be read, or if the
     * handler must not start any more.
     *
     * @return the arguments; null if the call has ended
     */
    private static Object @Nullable [] decode(ServerCall call, ByteBuf request, long nowNanos) {
        if (call.isCancelled()) {
            // Nobody waits for the result of a cancelled call, so the request is not decoded.
            finish(call, null, ServerCallErrors.gone());
            return null;
        }
        if (call.connection.isCutOff()) {
            finish(call, null, ServerCallErrors.closing());
            return null;
        }
        call.uncharged = 0;
        try {
            if (call.deadlineNanos() - nowNanos <= 0) {
                throw ServerCallErrors.late();
            }
            Object[] arguments = call.method().parameters().read(request, call);
            StreamReceiver items = call.receiver;
            if (items == null) {
                return arguments;
            }
            call.giveUpBody();
            return new Object[] {items};
        } catch (Throwable t) {
            finish(call, null, ServerCallErrors.unread(t));
            return null;
        }
    }

    private static void stream(ServerCall call, @Nullable Object result) {
        // The handler has returned, and only the call's stream goes on. For a method with interceptors, Admission.leave
        // would go on counting the handler while other threads deliver incoming items, so leaveNow is used.
        Admission.leaveNow(call, true);
        if (result instanceof Flow.Publisher<?> publisher) {
            call.connection.stream(call, publisher);
        } else {
            fail(call, new IllegalStateException(ServerMethod.NO_STREAM));
        }
    }

    /**
     * Continues a call whose handler or first interceptor has returned a stage, when the stage has ended.
     *
     * @param value result of the stage, which can be another stage; null if {@code thrown} is not null
     * @param thrown reason why there is no result; null if there is a result
     */
    static void onResult(ServerCall call, @Nullable Object value, @Nullable Throwable thrown) {
        ServerMethod called = call.method();
        if (thrown == null && value instanceof CompletionStage<?> stage && called.chain() != null) {
            // An interceptor has waited for another stage before it ran the handler. So the result of the ended stage
            // is again a stage: the one that the handler or a later interceptor has returned. The call now waits for
            // that stage.
            call.await(called.brought(stage, call.context()));
            return;
        }
        if (thrown == null) {
            finish(call, value, null);
        } else {
            fail(call, thrown);
        }
    }

    /**
     * Ends a call whose handler or interceptor has failed, and logs the failure. A failure after a cancel is not
     * logged, since the cancel itself makes most handlers fail.
     */
    private static void fail(ServerCall call, Throwable thrown) {
        // These are read now, because the call object may serve another call as soon as the reply has been sent.
        ServerConnection connection = call.connection;
        ServerMethod method = call.method();
        int id = call.id;
        RPCXException error = ServerCallErrors.failed(thrown, method, call.context())
                .withMetadata(call.context().replyMetadata());
        boolean isLogged = !call.isCancelled() && !ServerCallErrors.tellsAll(thrown, error);
        finish(call, null, error);
        if (isLogged) {
            connection.logFailure(method, id, ServerCallErrors.HANDLER, thrown);
        }
    }

    /**
     * Encodes the result or the error of a call, and sends it to the caller. Called at most once for each call, on any
     * thread. For a method that returns a stream, called only for an error.
     */
    private static void finish(ServerCall call, @Nullable Object result, @Nullable RPCXException error) {
        // The connection and the method are read now, because the call object may serve another call as soon as the
        // reply has been sent.
        ServerConnection connection = call.connection;
        ServerMethod failedNotice = error != null && call.notice ? call.method() : null;
        Admission.leave(call, error == null);
        call.endStagesAndReleaseObjects();
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
