package dev.rpcx.internal.call;

import dev.rpcx.Interceptor;
import dev.rpcx.Metadata;
import dev.rpcx.internal.Given;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A call that is on its way through the interceptors of a client or a server. */
public final class CallInvocation implements Interceptor.Invocation {
    private final String service;
    private final String method;
    private final @Nullable Object[] arguments;
    private final Metadata metadata;

    /** The call that the server handles; null if this invocation is at a client. */
    public final @Nullable HandledCall handled;

    /** What this invocation has to pass before it is sent; null if it is at a server. */
    private final @Nullable CallGate gate;

    /** Creates an invocation at a server, or one that nothing keeps from being sent. */
    public CallInvocation(
            String service,
            String method,
            @Nullable Object[] arguments,
            Metadata metadata,
            @Nullable HandledCall handled) {
        this(service, method, arguments, metadata, handled, null);
    }

    public CallInvocation(
            String service,
            String method,
            @Nullable Object[] arguments,
            Metadata metadata,
            @Nullable HandledCall handled,
            @Nullable CallGate gate) {
        this.service = service;
        this.method = method;
        this.arguments = arguments;
        this.metadata = metadata;
        this.handled = handled;
        this.gate = gate;
    }

    /**
     * Called by the last step of a client's interceptors, before the call is sent.
     *
     * @throws IllegalStateException if an interceptor has failed before
     */
    public void passGate() {
        if (gate != null) {
            gate.pass();
        }
    }

    /** Returns how many nanoseconds ago the server received the first frame of this call. Returns 0 at a client. */
    public long ageNanos() {
        return handled == null ? 0 : handled.ageNanos();
    }

    @Override
    public String service() {
        return service;
    }

    @Override
    public String method() {
        return method;
    }

    @Override
    public @Nullable Object[] arguments() {
        return arguments;
    }

    @Override
    public Metadata metadata() {
        return metadata;
    }

    @Override
    public CallInvocation withArguments(@Nullable Object... others) {
        return new CallInvocation(
                service, method, Given.notNull(others, "others", "an array, empty for none"), metadata, handled, gate);
    }

    @Override
    public CallInvocation with(String name, String value) {
        return with(metadata.with(name, value));
    }

    @Override
    public CallInvocation withEachAttempt(String name, Supplier<String> value) {
        return with(metadata.withEachAttempt(name, value));
    }

    @Override
    public CallInvocation onReply(Consumer<Metadata> listener) {
        return with(metadata.onReply(listener));
    }

    private CallInvocation with(Metadata changed) {
        return new CallInvocation(service, method, arguments, changed, handled, gate);
    }

    @Override
    public String toString() {
        return service + "/" + method;
    }
}
