package dev.rpcx;

import dev.rpcx.codec.Codec;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/** A classic request being handled. */
final class ClassicServerCall implements Runnable {
    private final ClassicServerConnection connection;
    private final ServerMethod method;
    private final ClassicWire.Request request;
    private final long beganNanos;
    private final long deadlineNanos;

    ClassicServerCall(
            ClassicServerConnection connection,
            ServerMethod method,
            ClassicWire.Request request,
            long beganNanos,
            long deadlineNanos) {
        this.connection = connection;
        this.method = method;
        this.request = request;
        this.beganNanos = beganNanos;
        this.deadlineNanos = deadlineNanos;
    }

    /** How the call ended; once. */
    void finished(byte @Nullable [] result, @Nullable RPCXException error) {
        AdmissionLimit admission = method.admission();
        if (admission != null) {
            admission.leave(beganNanos, deadlineNanos, connection.nanoTime());
        }
        connection.finished(request.id(), result, error);
    }

    @Override
    public void run() {
        if (deadlineNanos - connection.nanoTime() <= 0) {
            finished(
                    null,
                    new RPCXException(
                            RPCXException.Code.DEADLINE_EXCEEDED,
                            "the time was over before the handler started",
                            RPCXException.Executed.NOT_EXECUTED));
            return;
        }
        Object[] arguments;
        try {
            arguments = arguments();
        } catch (RuntimeException e) {
            finished(null, ServerCall.unreadable(e));
            return;
        }
        CallContext.set(connection.context(deadlineNanos));
        Object result;
        try {
            result = method.invoke(arguments, Metadata.EMPTY);
        } catch (Throwable t) {
            finished(null, ServerCall.failed(t));
            return;
        } finally {
            CallContext.set(null);
        }
        if (result instanceof CompletionStage<?> stage) {
            stage.whenComplete((value, thrown) -> finish(value, thrown));
        } else {
            finish(result, null);
        }
    }

    private Object[] arguments() {
        List<byte[]> values = request.values();
        List<Codec<Object>> codecs = method.arguments();
        if (values.size() != codecs.size()) {
            throw new IllegalArgumentException(values.size() + " parameters (expected: " + codecs.size() + ")");
        }
        Object[] arguments = new Object[values.size()];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = codecs.get(i).read(Unpooled.wrappedBuffer(values.get(i)));
        }
        return arguments;
    }

    @SuppressWarnings("NullAway") // the codec decides where null can be
    private void finish(@Nullable Object value, @Nullable Throwable thrown) {
        if (thrown != null) {
            finished(null, ServerCall.failed(thrown));
            return;
        }
        ByteBuf out = Unpooled.buffer();
        try {
            method.result().write(value, out);
        } catch (RuntimeException e) {
            finished(null, ServerCall.failed(e));
            return;
        }
        finished(ByteBufUtil.getBytes(out), null);
    }
}
