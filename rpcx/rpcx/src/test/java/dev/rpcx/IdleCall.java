package dev.rpcx;

import dev.rpcx.internal.server.CallThreads;
import dev.rpcx.internal.server.HandledContext;
import dev.rpcx.internal.server.ServerMethod;

/** A call of which nothing runs except what a test runs through {@link CallThreads}. */
public class IdleCall implements CallThreads.Call {
    private final ServerMethod method;
    private final HandledContext context;

    public IdleCall(ServerMethod method, HandledContext context) {
        this.method = method;
        this.context = context;
    }

    @Override
    public ServerMethod method() {
        return method;
    }

    @Override
    public HandledContext context() {
        return context;
    }

    @Override
    public boolean isRunner() {
        return false;
    }

    @Override
    public void releaseAdmission(boolean isDone) {}

    @Override
    public void threadsEnded(HandledContext of) {}
}
