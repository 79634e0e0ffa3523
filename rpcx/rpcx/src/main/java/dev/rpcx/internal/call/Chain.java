package dev.rpcx.internal.call;

import dev.rpcx.Interceptor;
import dev.rpcx.internal.Given;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * Combines the interceptors of a client or a server into one chain. The chain ends with the code that sends the call at
 * a client, or runs the handler at a server.
 */
public final class Chain {
    private Chain() {}

    /** Returns a step that passes a call through all interceptors in the given order, and finally to {@code end}. */
    public static Interceptor.Next of(Iterable<Interceptor> interceptors, Interceptor.Next end) {
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
     * Runs a step of the chain, and returns the result of the step. At a server, the step runs in the context of the
     * handled call, as {@link HandledCall#proceed} describes.
     */
    public static @Nullable Object proceed(Interceptor.Invocation call, Interceptor.Next step) throws Throwable {
        CallInvocation known = given(call);
        HandledCall handled = known.handled;
        return handled == null ? step.proceed(known) : handled.proceed(known, step);
    }

    /**
     * Returns {@code call}, the invocation with which an interceptor proceeds, as a {@code CallInvocation}. Throws an
     * {@link IllegalArgumentException} if RPCX did not create {@code call}.
     */
    public static CallInvocation given(Interceptor.Invocation call) {
        if (Given.notNull(call, "call", "the Invocation that was passed in, or one derived from it")
                instanceof CallInvocation known) {
            return known;
        }
        throw new IllegalArgumentException("call: an object of class "
                + call.getClass().getName() + " (expected: the Invocation that was passed in, or one derived from it)");
    }
}
