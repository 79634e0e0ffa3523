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
 * Runs callbacks, streams and interceptors of a connection's calls on the kind of thread on which the handlers of the
 * call's method run: see {@link RunOn.Place}. Used for both wires. This class runs:
 *
 * <ul>
 *   <li>the callbacks for the cancel or the end of a call
 *   <li>the publishers and subscribers of streams
 *   <li>the rest of a chain of interceptors, if an interceptor proceeds on an event loop
 * </ul>
 *
 * <p>Each thread on which this class runs code of a call is counted for the call. An interceptor's own thread that runs
 * the handler is counted too. The call's {@link HandledContext} holds the count. The {@link Call} object does not hold
 * the count, since the object may serve another call later.
 *
 * <p>A call that is over keeps its place on the connection until the last of the counted threads has ended. Until then,
 * the connection counts the handler as running. If the method has interceptors, the method's {@link AdmissionLimit}
 * also counts the handler until then, since one of the counted threads may run the handler. A handler that has returned
 * a stream is an exception: neither the connection nor the {@code AdmissionLimit} counts this handler any more.
 */
public final class CallThreads {
    /** Call whose code may run on other threads in addition to the thread of its handler. */
    public interface Call {
        ServerMethod method();

        HandledContext context();

        /**
         * Returns whether the calling thread is the call's own thread. The call's own thread is the thread that was
         * given to the call, as long as that thread runs the call's handler or interceptors.
         */
        boolean isRunner();

        /**
         * Removes the call's handler from the count of running handlers in its method's {@link AdmissionLimit}. Any
         * thread may call this method, but only one at a time. Does nothing if the handler is not counted any more, or
         * was never counted.
         *
         * @param isDone whether the call has produced a result
         */
        void releaseAdmission(boolean isDone);

        /**
         * Notifies the call that the last of the threads that {@link CallThreads} counts for the call has ended. By
         * then, the call is over, or only its reply remains to be sent. Called on the event loop or, after the event
         * loop's end, while holding the connection's lock.
         *
         * @param of context of the call for which the threads ran; this {@code Call} object may serve another call by
         *     now
         */
        void threadsEnded(HandledContext of);
    }

    /** {@link Steps} that run nothing. They are used for a call that is over and whose threads have all ended. */
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
            // This object does not know the call's method. The answer true, as for a method that returns a stream,
            // leaves the result of a step unchanged. After the answer false, a result that is a stage could be replaced
            // by another stage.
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
     * Number of stack frames that must be free before a thread is counted for a call. These frames are enough to hand a
     * task over to a thread, or to record that a thread has ended.
     */
    private static final int RESERVED_FRAMES = 100;

    private final EventLoop loop;

    /**
     * Runs a task on the connection's event loop. If the event loop itself hands the task over, the task runs after the
     * task that the loop is running now. If the loop has ended, the task runs immediately on the calling thread, under
     * the connection's lock.
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
     * Runs the callbacks for the cancel or the end of a call where the handlers of the call's method run, without a
     * current call. This method hands the callbacks over, and does not wait for them. On another thread, they may run
     * before this method returns. If there is no thread for the callbacks, or the event loop has ended, this method may
     * run the callbacks itself.
     */
    public void runCallbacks(Call call, List<? extends Runnable> callbacks) {
        run(
                call.method().place(),
                new Counted(call, call.context(), () -> callbacks.forEach(CallThreads::runCallback), null).begin());
    }

    /**
     * Runs the callbacks for the end of a call like {@link #runCallbacks(Call, List)}. A failure is only reported and
     * not thrown, so that the failure does not keep the call from ending.
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
     * Returns an executor that calls the publishers and subscribers of a call's streams. The executor calls them where
     * the handlers of the call's method run, and makes the call's context the current one.
     */
    public Executor signalsOf(Call call) {
        HandledContext context = call.context();
        RunOn.Place place = call.method().place();
        return signal -> run(place, new Counted(call, context, () -> context.run(signal), null).begin());
    }

    /**
     * Returns an object that runs the rest of the call's chain of interceptors where the handlers of the call's method
     * run.
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
            // threadsEnded will not run or has failed, so the next check for lost calls gives the call's place back
            lost.isAny = true;
            throw t;
        }
    }

    /**
     * Task for a thread that is counted for its call. The boolean value is true if the task has begun or will not run.
     * Two threads can try to set the value: the thread that got the task from an executor, and the thread that handed
     * the task to the executor, if the executor threw an exception. Only the first one goes on. So the task runs at
     * most once, even if an executor takes the task and throws an exception nevertheless.
     *
     * <p>Create the task before its thread is counted, and hand the task over right after. A failure between counting
     * the thread and handing the task over would leave the thread counted for ever.
     */
    private final class Counted extends AtomicBoolean implements PoolShares.Task {
        private static final long serialVersionUID = 1;

        private final transient Call call;
        private final transient HandledContext context;
        private final transient Runnable task;

        /**
         * Part of the call's chain of interceptors that this task runs; null if the task runs something else. If there
         * is no thread for the task, the part is refused. A task without a part then runs on the event loop.
         */
        final transient @Nullable LaterStep step;

        Counted(Call call, HandledContext context, Runnable task, @Nullable LaterStep step) {
            this.call = call;
            this.context = context;
            this.task = task;
            this.step = step;
        }

        /**
         * Counts one more thread for the call. If this method throws an exception, for example because the stack is
         * nearly full, no thread has been counted.
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

        /**
         * Stops counting the thread of this task, because the task will not run. Does nothing if the task has begun to
         * run.
         */
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
     * Runs parts of a call's chain of interceptors on threads for handlers of the call's method. The handler is the
     * last part of the chain.
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
         * Returns whether the method of the call returns a stream. The publisher of a returned stream must never be
         * treated as a stage, even if it also implements {@link CompletionStage}.
         */
        boolean bringsStream();

        /**
         * Returns whether a thread other than the call's own thread (see {@link Call#isRunner}) is running a part of
         * the call's chain of interceptors.
         */
        boolean isAnyBehind();

        /**
         * Returns whether the handler can start on the calling thread without a further thread being counted for the
         * call. This is so for the call's own thread, and for a thread that is counted because it runs a part of the
         * call's chain of interceptors. Returns false for a thread that is counted only because it runs a callback or a
         * stream of the call.
         */
        boolean isCounted();

        /**
         * Runs the handler on the calling thread, on which an interceptor has called {@code proceed}. While the handler
         * runs, the thread is counted for the call, and a cancel of the call interrupts the thread.
         *
         * @throws RPCXException the call has ended
         */
        @Nullable
        Object handle(Interceptor.Invocation invocation, Interceptor.Next handler) throws Throwable;

        /**
         * Called when the call has ended. Withdraws the steps of the call's chain of interceptors that still wait for a
         * thread of the pool. A step that is not withdrawn fails when it starts. Any thread may call this method. The
         * method throws no exception.
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
         * Steps of the call's chain of interceptors that wait for a thread. Null if no step has ever waited for one.
         * Guarded by {@code this}.
         */
        private @Nullable Set<LaterStep> unbegun;

        /**
         * Threads that are running a part of the call's chain of interceptors, without the thread that was given to the
         * call (see {@link Call#isRunner}). Null if there has never been such a thread. Guarded by {@code this}.
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
            // Everything that may fail is done before the step's thread is counted. A failure between counting the
            // thread and handing the step over would leave the thread counted for ever. The set "unbegun" gets the step
            // before the step is handed over. So a thread that ends the call after onQueued() has looked finds the
            // step.
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
         * Runs the next step of the chain of interceptors on the calling thread. The caller of this method has already
         * counted the calling thread as one of the call's threads. If the call is cancelled during the step, the
         * calling thread is interrupted.
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
                // a step that has not been withdrawn does no harm: when it runs, it finds that the call has ended
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
     * Step that runs the rest of a call's chain of interceptors later, on a thread for handlers of the method. A cancel
     * of the call interrupts that thread. If the call ends before the step has started, the result of the step fails.
     * If the step waits for a thread of the pool, it is withdrawn at the end of the call. Any other step fails when it
     * starts.
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
         * Withdraws this step if the call has ended while the step was being handed to a thread. The thread that hands
         * the step over calls this method right afterwards. If another thread ended the call during the handover, that
         * thread may have tried to withdraw the step too early, when the step did not wait for a thread yet. A thread
         * that ends the call after the check in this method finds the step.
         */
        void onQueued() {
            if (context.isBarred()) {
                takeBack();
            }
        }

        /**
         * Withdraws this step if the step still waits for a thread of the pool. Called when the call has ended.
         * {@code runCallbacks} makes the result of a withdrawn step fail. So code that waits for the result runs where
         * the handlers of the call's method run.
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
            result.completeExceptionally(ServerCallErrors.noThread());
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
                    // Other calls may share the stage, and the stage may never end. Therefore this step waits for a
                    // stage that belongs to this call alone and ends at the latest when the call is given up.
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
                // clears any interrupt, even one that the handler itself has caused, since the thread's next task must
                // not see it
                Thread.interrupted();
            }
        }
    }

    /**
     * Interrupts a thread when the call is cancelled, but only while the thread runs its part of the call's chain of
     * interceptors.
     */
    static final class Interruptible implements Runnable {
        /**
         * Thread that a cancel of the call interrupts; null after the thread has run its part of the chain of
         * interceptors. Guarded by {@code this}.
         */
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
         * Prevents any further interrupt by a cancel of the call. Called on the thread itself, after the thread has run
         * its part of the chain. If a cancel has interrupted the thread, that interrupt is cleared. Any other interrupt
         * is kept, since it may come from the owner of the thread.
         */
        public synchronized void end() {
            thread = null;
            if (isInterrupted) {
                Thread.interrupted();
            }
        }
    }
}
