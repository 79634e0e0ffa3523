package dev.rpcx;

import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/** Interceptors of a client or a server in their order, and what answers the call behind them. */
final class Chain {
    private Chain() {}

    /** All of them in order, the first outermost. */
    static Interceptor.Next of(Iterable<Interceptor> interceptors, Interceptor.Next end) {
        Interceptor.Next next = call -> end.proceed(given(call));
        ArrayDeque<Interceptor> reversed = new ArrayDeque<>();
        for (Interceptor each : interceptors) {
            reversed.push(Given.notNull(each, "interceptors", "none of them null"));
        }
        for (Interceptor interceptor : reversed) {
            Interceptor.Next rest = next;
            Interceptor.Next step = call -> interceptor.intercept(call, rest);
            next = call -> proceed(call, step);
        }
        return next;
    }

    /**
     * Goes one step further, at a server where {@link CallContext#current} is the call that is handled: see
     * {@link HandledCall#proceed}.
     */
    static @Nullable Object proceed(Interceptor.Invocation call, Interceptor.Next step) throws Throwable {
        CallInvocation known = given(call);
        HandledCall handled = known.handled;
        return handled == null ? step.proceed(known) : handled.proceed(known, step);
    }

    /** The call that an interceptor proceeds with: one that it has made by itself is that of no call. */
    static CallInvocation given(Interceptor.Invocation call) {
        if (Given.notNull(call, "call", "the Invocation that came, or one made of it")
                instanceof CallInvocation known) {
            return known;
        }
        throw new IllegalArgumentException("call: one of " + call.getClass().getName()
                + " (expected: the Invocation that came, or one made of it)");
    }
}
