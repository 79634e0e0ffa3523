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
 * Runs the user code of a connection's calls besides their handlers: callbacks for the end of a call, the publishers
 * and subscribers of its streams, and the rest of its chain of interceptors if an interceptor proceeds on an event
 * loop. All this code runs where the handlers of the method run. Used for both wires.
 *
 * <p>The threads that run such code are counted, and so is an interceptor's own thread on which the handler runs. The
 * count is in the call's {@link HandledContext}, since the object of the call may serve another call later. A call that
 * is over keeps its place, and its handler stays counted, until the last of these threads has ended.
 */
public final class CallThreads {
    /** Call for which further threads may run, besides the thread of its handler. */
    public interface Call {
        ServerMethod method();

        HandledContext context();

        /** Returns whether the calling thread was given to this call, and is running its handler or interceptors. */
        boolean isRunner();

        /**
         * Stops counting the call's handler in the limit of its method. Any thread may call this, but only one at a
         * time. Further calls do nothing.
         *
         * @param isDone whether the call has produced a result
         */
        void releaseAdmission(boolean isDone);

        /**
         * Called when the last further thread has ended for a call that is over, or of which only the reply remains to
         * be sent. Event loop only.
         *
         * @param of context of the call for which the threads ran; this {@code Call} object may serve another call by
         *     now
         */
        void threadsEnded(HandledContext of);
    }

    /** {@link Steps} of every call that is over. They run nothing. */
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
     * Number of stack frames that must be free before a handler starts or a thread is counted. So many are enough to
     * hand a task over to a thread, or to record that a thread has ended.
     */
    private static final int RESERVED_FRAMES = 100;

    private final EventLoop loop;

    /**
     * Runs a task on the connection's event loop, after the method that hands it over has returned. If the loop has
     * ended, runs the task immediately on the calling thread.
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
     * Runs the callbacks for the end of a call where the handlers of its method run, without a current call. They run
     * after the code that ends the call has returned. They run earlier only if there is no thread for them or the event
     * loop has ended.
     */
    public void runCallbacks(Call call, List<? extends Runnable> callbacks) {
        run(
                call.method().place(),
                new Counted(call, call.context(), () -> callbacks.forEach(CallThreads::runCallback), null).begin());
    }

    /**
     * Runs the callbacks for the end of a call like {@link #runCallbacks(Call, List)}, but only reports a failure. The
     * call is over in any case.
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

    /**
     * Returns an executor that calls the publishers and subscribers of a call's streams. It calls them in the call's
     * context, where the handlers of the method run.
     */
    public Executor signalsOf(Call call) {
        HandledContext context = call.context();
        RunOn.Place place = call.method().place();
        return signal -> run(place, new Counted(call, context, () -> context.run(signal), null).begin());
    }

    /**
     * Returns an object that runs the rest of the call's chain of interceptors where the handlers of its method run.
     */
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
     * Task for a thread that is counted for its call. The task runs at most once, even if an executor takes it and
     * throws nevertheless. Create the task before its thread is counted, and hand it over right after: then a counted
     * thread is also counted as ended, whatever fails.
     */
    private final class Counted extends AtomicBoolean implements PoolShares.Task {
        private static final long serialVersionUID = 1;

        private final transient Call call;
        private final transient HandledContext context;
        private final transient Runnable task;

        /**
         * Part of the call's chain of interceptors that this task runs; null for any other task. Such a part runs only
         * where handlers of the method run. Any other task runs on the event loop if there is no thread for it.
         */
        final transient @Nullable LaterStep step;

        Counted(Call call, HandledContext context, Runnable task, @Nullable LaterStep step) {
            this.call = call;
            this.context = context;
            this.task = task;
            this.step = step;
        }

        /**
         * Counts one more thread for the call. If this method throws, for example because the stack is nearly full,
         * nothing has been counted.
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

    /**
     * Runs parts of one call's chain of interceptors on the threads on which the handlers of its method run. The chain
     * ends with the handler.
     */
    public interface Steps {
        /** Returns whether the calling thread is an event loop on which handlers of the method must not run. */
        boolean isElsewhere();

        /**
         * Runs the next step of the call's chain of interceptors later, on a thread for handlers of the method. Returns
         * a stage that ends with the result of that step.
         *
         * @throws RPCXException the call has ended
         */
        CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step);

        /**
         * Returns whether the method of the call returns a stream. If so, a publisher that is also a
         * {@link CompletionStage} must not be treated as a stage.
         */
        boolean bringsStream();

        /**
         * Returns whether some thread other than the call's own is running a part of the call's chain of interceptors.
         */
        boolean isAnyBehind();

        /**
         * Returns whether the call stays open as long as the calling thread runs for it. This is so if the thread is
         * the call's own, or if it is counted and runs a part of the call's chain of interceptors.
         */
        boolean isCounted();

        /**
         * Runs the handler on the calling thread, which belongs to an interceptor. Meanwhile, the thread is counted for
         * the call, and a cancel of the call interrupts it.
         *
         * @throws RPCXException the call has ended
         */
        @Nullable
        Object handle(Interceptor.Invocation invocation, Interceptor.Next handler) throws Throwable;

        /**
         * Called when the call has ended, to withdraw the steps that still wait for a thread. Any thread may call this.
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
         * Steps of the call's chain of interceptors that wait for a thread. Null if no step has ever been handed to
         * another thread. Guarded by {@code this}.
         */
        private @Nullable Set<LaterStep> unbegun;

        /**
         * Threads other than the call's own that are running a part of its chain of interceptors. Null if there has
         * never been one. Guarded by {@code this}.
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
         * Runs the next step of the chain of interceptors on the calling thread. The thread has been counted for the
         * call before. A cancel of the call interrupts the thread during the step.
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
     * Rest of a call's chain of interceptors, which runs later on a thread for handlers of the method. A cancel of the
     * call interrupts this thread. If the call ends before the step has started, the step is withdrawn.
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
         * Called after the step has been handed to a thread. Withdraws the step if the call has ended in the meantime.
         */
        void onQueued() {
            if (context.isBarred()) {
                takeBack();
            }
        }

        /**
         * Withdraws the step if it still waits for its thread. Called when the call has ended. The result of the step
         * then fails, and code that waits for this result runs where the publishers and subscribers of the call run.
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

    /**
     * Thread that a cancel of the call interrupts, as long as the thread runs a part of the call's chain of
     * interceptors.
     */
    static final class Interruptible implements Runnable {
        /** Thread that runs a part of the chain; null after it has done so. Guarded by {@code this}. */
        private @Nullable Thread thread;

        /** Whether a cancel of the call has interrupted the thread. Guarded by {@code this}. */
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
         * Called on the thread itself, after it has run its part of the chain. From now on, a cancel of the call does
         * not interrupt the thread, and the interrupt of an earlier cancel is cleared. Any other interrupt is kept,
         * since it may come from the owner of the thread.
         */
        public synchronized void end() {
            thread = null;
            if (isInterrupted) {
                Thread.interrupted();
            }
        }
    }
}
