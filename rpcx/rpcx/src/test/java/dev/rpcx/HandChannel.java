package dev.rpcx;

import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.MockTicker;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * A channel without a socket, under a simulated clock. A test decides whether the channel's handlers take the test's
 * thread for their event loop, and whether that event loop has ended.
 */
public final class HandChannel extends EmbeddedChannel {
    public final Loop loop;
    private final @Nullable EventLoop seen;

    public HandChannel(MockTicker ticker) {
        super(EmbeddedChannel.builder().ticker(ticker));
        loop = new Loop(super.eventLoop());
        seen = (EventLoop)
                Proxy.newProxyInstance(EventLoop.class.getClassLoader(), new Class<?>[] {EventLoop.class}, loop);
    }

    @Override
    public EventLoop eventLoop() {
        // the constructor of the superclass calls this method before the field is set
        return seen == null ? super.eventLoop() : seen;
    }

    /** The event loop, as handlers see it. */
    public static final class Loop implements InvocationHandler {
        private final EventLoop loop;

        /** If set, handlers do not take the test's thread for the loop's. */
        public boolean isElsewhere;

        public boolean hasEnded;

        /**
         * If set, this event loop gets all timers from then on. Otherwise they end with the channel, which timers of a
         * socket's event loop do not.
         */
        @Nullable
        public EventLoop timers;

        /** If set, no task can be handed to the event loop, for want of memory. */
        public boolean fails;

        /** This many of the next tasks cannot be handed to the event loop, for want of memory. */
        public int failingTasks;

        /** This many of the next timers cannot be set, for want of memory. */
        public int failingTimers;

        private Loop(EventLoop loop) {
            this.loop = loop;
        }

        @Override
        public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] arguments) throws Throwable {
            switch (method.getName()) {
                case "inEventLoop":
                    return !isElsewhere && !hasEnded;
                case "isShuttingDown":
                    return hasEnded;
                case "execute":
                    if (hasEnded) {
                        throw new RejectedExecutionException("the loop has ended");
                    }
                    if (fails || failingTasks > 0) {
                        failingTasks = Math.max(0, failingTasks - 1);
                        throw new OutOfMemoryError("of the loop, in this test");
                    }
                    break;
                case "schedule":
                case "scheduleWithFixedDelay":
                    if (failingTimers > 0) {
                        failingTimers--;
                        throw new OutOfMemoryError("of a timer, in this test");
                    }
                    break;
                default:
                    break;
            }
            EventLoop timing = timers;
            try {
                return method.invoke(timing != null && method.getName().equals("schedule") ? timing : loop, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }
    }
}
