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

    public CallInvocation(
            String service,
            String method,
            @Nullable Object[] arguments,
            Metadata metadata,
            @Nullable HandledCall handled) {
        this.service = service;
        this.method = method;
        this.arguments = arguments;
        this.metadata = metadata;
        this.handled = handled;
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
                service, method, Given.notNull(others, "others", "an array, empty for none"), metadata, handled);
    }

    @Override
    public CallInvocation with(String name, String value) {
        return new CallInvocation(service, method, arguments, metadata.with(name, value), handled);
    }

    @Override
    public CallInvocation withEachAttempt(String name, Supplier<String> value) {
        return new CallInvocation(service, method, arguments, metadata.withEachAttempt(name, value), handled);
    }

    @Override
    public CallInvocation onReply(Consumer<Metadata> listener) {
        return new CallInvocation(service, method, arguments, metadata.onReply(listener), handled);
    }

    @Override
    public String toString() {
        return service + "/" + method;
    }
}
