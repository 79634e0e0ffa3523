package dev.rpcx.internal.server;

import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import dev.rpcx.RunOn;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.call.BoundFuture;
import dev.rpcx.internal.io.LoopThread;
import io.netty.channel.EventLoop;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Runs user code for the calls of one connection, on either wire, in addition to their handlers: callbacks for the end
 * of a call, the publishers and subscribers of a call's streams, and the rest of a chain of interceptors if an
 * interceptor proceeds on an event loop. All this code runs where the handlers of the method run. The threads that run
 * it are counted, and so is an interceptor's own thread on which the handler runs. They are counted in the call's
 * context, since the object of the call may serve another call later. A call that is over keeps its place, and its
 * handler stays counted, until the last of these threads has ended.
 */
public final class CallThreads {
    /** Call for which threads may run in addition to the thread of its handler. */
    public interface Call {
        ServerMethod method();

        HandledContext context();

        /**
         * Returns whether the calling thread was given to the call, and runs the call's handler or the interceptors
         * before it.
         */
        boolean isRunner();

        /**
         * Stops counting the handler in the limit of its method. Any thread may call this, but only one at a time.
         * Further calls of this method do nothing.
         */
        void releaseAdmission(boolean isDone);

        /**
         * Called when the last of the call's threads has ended, and the call is over or only its reply remains to be
         * sent. Event loop only.
         *
         * @param of context of the call for which the threads ran; this {@code Call} object may serve another call by
         *     now
         */
        void threadsEnded(HandledContext of);
    }

    /** Steps of every call that is over. */
    public static final Steps NO_STEPS = new Steps() {
        @Override
        public boolean isElsewhere() {
            return Thread.currentThread() instanceof LoopThread;
        }

        @Override
        public CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step) {
            throw HandledContext.endedError();
        }

        @Override
        public boolean bringsStream() {
            // the method of the call is not known any more; with true, the result of the call stays unchanged
            return true;
        }

        @Override
        public boolean isAnyBehind() {
            return false;
        }

        @Override
        public boolean isCounted() {
            return false;
        }

        @Override
        public @Nullable Object handle(Interceptor.Invocation invocation, Interceptor.Next handler) {
            throw HandledContext.endedError();
        }

        @Override
        public void callEnded() {}
    };

    /**
     * Maximum number of stack frames that are needed to hand a task over, or to end the work of a thread. If fewer are
     * free, no handler starts, and no thread is counted.
     */
    private static final int RESERVED_FRAMES = 100;

    private final EventLoop loop;

    /**
     * Runs a task on the connection's event loop, after the method that hands the task over has returned. If the loop
     * has ended, the task runs immediately on the calling thread.
     */
    private final Executor inLoopOrHere;

    private final ConnectionThreads threads;
    private final LostCalls lost;

    public CallThreads(EventLoop loop, Executor inLoopOrHere, ConnectionThreads threads, LostCalls lost) {
        this.loop = loop;
        this.inLoopOrHere = inLoopOrHere;
        this.threads = threads;
        this.lost = lost;
    }

    /**
     * Runs the callbacks for the end of a call, without a current call. They run after the code that ends the call has
     * returned, unless there is no thread for them or the event loop has ended.
     */
    public void runCallbacks(Call call, List<? extends Runnable> callbacks) {
        run(
                call.method().place(),
                new Counted(call, call.context(), () -> callbacks.forEach(CallThreads::runCallback), null).begin());
    }

    /**
     * Runs the callbacks for the end of a call, as {@link #runCallbacks(Call, List)} does. A failure is reported and
     * not thrown, since the call is over all the same.
     */
    void runCallbacksIfPossible(Call call, List<? extends Runnable> callbacks) {
        try {
            runCallbacks(call, List.copyOf(callbacks));
        } catch (Throwable noMemory) {
            ThreadTools.report(noMemory);
        }
    }

    private static void runCallback(Runnable callback) {
        Threads.runShared(() -> {
            try {
                callback.run();
            } catch (Throwable t) {
                CallbackFailures.log(t);
            }
        });
    }

    /** Returns an executor that runs the signals of a call's streams, in the call's context. */
    public Executor signalsOf(Call call) {
        HandledContext context = call.context();
        RunOn.Place place = call.method().place();
        return signal -> run(place, new Counted(call, context, () -> context.run(signal), null).begin());
    }

    /** Returns an object that runs the rest of the call's chain where the handlers of the method run. */
    public Steps stepsOf(Call call) {
        return new StepsOfCall(this, call);
    }

    private void run(RunOn.Place place, Counted task) {
        boolean isHanded = false;
        try {
            if (place == RunOn.Place.EVENT_LOOP) {
                inLoopOrHere.execute(task);
            } else if (loop.inEventLoop()) {
                runAt(place, task);
            } else {
                inLoopOrHere.execute(() -> runAt(place, task));
            }
            isHanded = true;
        } finally {
            if (!isHanded) {
                task.endUnrun();
            }
        }
    }

    private void runAt(RunOn.Place place, Counted task) {
        try {
            if (task.step == null) {
                threads.runSignal(place, task);
            } else {
                threads.run(place, task);
                task.step.onQueued();
            }
        } catch (RuntimeException | Error noThread) {
            task.runWithoutThread();
        }
    }

    private void ended(Call call, HandledContext context) {
        if (!context.endThread(call)) {
            return;
        }
        try {
            inLoopOrHere.execute(() -> call.threadsEnded(context));
        } catch (Throwable t) {
            // the call was not notified: the next check for lost calls gives its place back
            lost.isAny = true;
            throw t;
        }
    }

    /**
     * Task that runs at most once, even if the executor to which it is given both takes it and throws. Create it before
     * its thread is counted, and hand it over right after that. So whatever fails, a counted thread is later counted as
     * ended.
     */
    private final class Counted extends AtomicBoolean implements PoolShares.Task {
        private static final long serialVersionUID = 1;

        private final transient Call call;
        private final transient HandledContext context;
        private final transient Runnable task;

        /**
         * Step of a chain that this task runs; a step may run only where the handlers run. Null for any other task,
         * which runs on the event loop if there is no thread for it.
         */
        final transient @Nullable LaterStep step;

        Counted(Call call, HandledContext context, Runnable task, @Nullable LaterStep step) {
            this.call = call;
            this.context = context;
            this.task = task;
            this.step = step;
        }

        /**
         * Records that one more thread will run for the call. If this method throws, for example because the stack is
         * nearly full, nothing has been recorded.
         */
        Counted begin() {
            ThreadTools.reserveStack(RESERVED_FRAMES);
            context.beginThread();
            return this;
        }

        @Override
        public void run() {
            run(task);
        }

        void runWithoutThread() {
            run(step == null ? task : step::refuse);
        }

        @Override
        public void refused(Throwable noThread) {
            boolean isHanded = false;
            try {
                inLoopOrHere.execute(this::runWithoutThread);
                isHanded = true;
            } finally {
                if (!isHanded) {
                    endUnrun();
                }
            }
        }

        /** Stops counting the thread of a task that will not run. Does nothing if the task has begun. */
        void endUnrun() {
            if (compareAndSet(false, true)) {
                ended(call, context);
            }
        }

        private void run(Runnable one) {
            if (!compareAndSet(false, true)) {
                return;
            }
            try {
                one.run();
            } finally {
                LoopThread.forgetInterrupt();
                ended(call, context);
            }
        }
    }

    /** Continues the chain of one call on the threads on which the handlers of its method run. */
    public interface Steps {
        /** Returns whether the calling thread is an event loop on which no handler of the method may run. */
        boolean isElsewhere();

        /**
         * Runs the next step of the call's chain later, on a thread on which the handlers of the method run. Returns a
         * stage that ends with the result of that step.
         *
         * @throws RPCXException the call has ended
         */
        CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step);

        /**
         * Returns whether the method returns a stream. Then a publisher that also is a {@link CompletionStage} must not
         * be treated as a stage.
         */
        boolean bringsStream();

        /** Returns whether a thread other than the call's own runs a part of the call's chain. */
        boolean isAnyBehind();

        /**
         * Returns whether the call stays open as long as the calling thread runs for it: the thread is the call's own,
         * or runs a part of the call's chain and is counted.
         */
        boolean isCounted();

        /**
         * Runs the handler on the calling thread, which belongs to an interceptor. While the handler runs, the thread
         * is counted, and a cancel of the call interrupts it.
         *
         * @throws RPCXException the call has ended
         */
        @Nullable
        Object handle(Interceptor.Invocation invocation, Interceptor.Next handler) throws Throwable;

        /**
         * Takes back the steps that still wait for a thread. Called when the call has ended. Any thread may call this.
         * The method throws nothing.
         */
        void callEnded();
    }

    private static final class StepsOfCall implements Steps {
        private final CallThreads threads;
        private final Call call;
        private final HandledContext context;
        private final RunOn.Place place;
        private final boolean bringsStream;

        /**
         * Steps that have not started. Null if no step of the call has been handed to another thread. Guarded by
         * {@code this}.
         */
        private @Nullable Set<LaterStep> unbegun;

        /**
         * Counted threads that run a part of the chain. Null if there has never been such a thread. Guarded by
         * {@code this}.
         */
        private @Nullable Set<Thread> counted;

        StepsOfCall(CallThreads threads, Call call) {
            this.threads = threads;
            this.call = call;
            this.context = call.context();
            this.place = call.method().place();
            this.bringsStream = call.method().returnsStream();
        }

        @Override
        public boolean isElsewhere() {
            return Thread.currentThread() instanceof LoopThread
                    && (place != RunOn.Place.EVENT_LOOP || !threads.loop.inEventLoop());
        }

        @Override
        public CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step) {
            LaterStep later = new LaterStep(this, invocation, step);
            // nothing may fail between counting the step's thread and handing the step over, so all that may fail is
            // done before
            ThreadTools.reserveStack(RESERVED_FRAMES);
            synchronized (this) {
                if (unbegun == null) {
                    unbegun = new HashSet<>(2);
                }
                unbegun.add(later);
            }
            if (!context.beginStep()) {
                onBegun(later);
                throw HandledContext.endedError();
            }
            threads.run(place, later.counted);
            return later.result;
        }

        @Override
        public boolean bringsStream() {
            return bringsStream;
        }

        @Override
        public synchronized boolean isAnyBehind() {
            return counted != null && !counted.isEmpty();
        }

        @Override
        public boolean isCounted() {
            if (call.isRunner()) {
                return true;
            }
            synchronized (this) {
                return counted != null && counted.contains(Thread.currentThread());
            }
        }

        @Override
        public @Nullable Object handle(Interceptor.Invocation invocation, Interceptor.Next handler) throws Throwable {
            ThreadTools.reserveStack(RESERVED_FRAMES);
            if (!context.enterHandlerOnThread()) {
                throw HandledContext.endedError();
            }
            try {
                return proceedCounted(invocation, handler);
            } finally {
                threads.ended(call, context);
            }
        }

        /**
         * Runs the next step of the chain on the calling thread, which has already been counted. A cancel of the call
         * interrupts the thread during that step.
         */
        @Nullable
        Object proceedCounted(Interceptor.Invocation invocation, Interceptor.Next step) throws Throwable {
            Thread here = Thread.currentThread();
            Interruptible interruptible = new Interruptible(here);
            synchronized (this) {
                if (counted == null) {
                    counted = new HashSet<>(2);
                }
                counted.add(here);
            }
            try {
                context.onCancel(interruptible);
                return HandledContext.proceedHere(context, this, invocation, step);
            } finally {
                synchronized (this) {
                    counted.remove(here);
                }
                interruptible.end();
            }
        }

        @Override
        public void callEnded() {
            try {
                List<LaterStep> all;
                synchronized (this) {
                    all = unbegun == null ? List.of() : List.copyOf(unbegun);
                }
                all.forEach(LaterStep::takeBack);
            } catch (Throwable noMemory) {
                // steps that have not been taken back do no harm: when they run, they find that the call has ended
                ThreadTools.report(noMemory);
            }
        }

        synchronized void onBegun(LaterStep step) {
            if (unbegun != null) {
                unbegun.remove(step);
            }
        }
    }

    /**
     * Rest of a call's chain, which runs later, on a thread on which the handlers of the method run. A cancel of the
     * call interrupts this thread. If the call ends before the step has started, the step is taken back.
     */
    private static final class LaterStep implements Runnable {
        private final StepsOfCall of;
        private final HandledContext context;
        private final Interceptor.Invocation invocation;
        private final Interceptor.Next step;
        final Counted counted;
        final BoundFuture<@Nullable Object> result = new BoundFuture<>();

        LaterStep(StepsOfCall of, Interceptor.Invocation invocation, Interceptor.Next step) {
            this.of = of;
            this.context = of.context;
            this.invocation = invocation;
            this.step = step;
            this.counted = of.threads.new Counted(of.call, of.context, this, this);
        }

        /**
         * Takes the step back if the call ended before the step was in the queue. Called after the step has been handed
         * over.
         */
        void onQueued() {
            if (context.isBarred()) {
                takeBack();
            }
        }

        /**
         * Takes the step back, if it still waits for its thread. Called when the call has ended. The result of the step
         * then fails, and code that waits for it runs where the signals of the call's streams run.
         */
        void takeBack() {
            if (of.threads.threads.withdraw(of.place, counted)) {
                of.onBegun(this);
                try {
                    of.threads.runCallbacks(
                            of.call, List.of(() -> result.completeExceptionally(HandledContext.endedError())));
                } finally {
                    counted.endUnrun();
                }
            }
        }

        void refuse() {
            of.onBegun(this);
            result.completeExceptionally(
                    RPCXException.refused(RPCXException.Code.UNAVAILABLE, "the server has no thread for the call"));
        }

        @Override
        public void run() {
            of.onBegun(this);
            if (context.isBarred()) {
                result.completeExceptionally(HandledContext.endedError());
                return;
            }
            try {
                Object value = proceed();
                if (!of.bringsStream && value instanceof CompletionStage<?> stage) {
                    // calls may share the stage, and it may never end, so the result comes from a stage of this call
                    // alone
                    context.asOwn(stage).whenComplete(this::end);
                } else {
                    result.complete(value);
                }
            } catch (Throwable t) {
                result.completeExceptionally(t);
            }
        }

        private void end(@Nullable Object value, @Nullable Throwable thrown) {
            if (thrown == null) {
                result.complete(value);
            } else {
                result.completeExceptionally(thrown);
            }
        }

        private @Nullable Object proceed() throws Throwable {
            try {
                return of.proceedCounted(invocation, step);
            } finally {
                // the thread's next task must not see an interrupt, even one that the handler itself has caused
                Thread.interrupted();
            }
        }
    }

    /** Thread that a cancel of the call interrupts, as long as the thread runs a part of the call's chain. */
    static final class Interruptible implements Runnable {
        /** The thread while it runs a part of the chain; null afterwards. Guarded by {@code this}. */
        private @Nullable Thread thread;

        /** Whether a cancel has interrupted the thread. Guarded by {@code this}. */
        private boolean isInterrupted;

        Interruptible(Thread thread) {
            this.thread = thread;
        }

        @Override
        public synchronized void run() {
            if (thread != null) {
                isInterrupted = true;
                thread.interrupt();
            }
        }

        /**
         * Called on the thread when it has run its part of the chain. A later cancel of the call does not interrupt the
         * thread, and the interrupt of an earlier cancel is cleared. Any other interrupt is kept, since the owner of
         * the thread may have caused it.
         */
        public synchronized void end() {
            thread = null;
            if (isInterrupted) {
                Thread.interrupted();
            }
        }
    }
}
