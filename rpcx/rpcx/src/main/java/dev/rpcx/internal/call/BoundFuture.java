package dev.rpcx.internal.call;

import dev.rpcx.CallContext;
import dev.rpcx.RPCXFuture;
import dev.rpcx.internal.io.LoopThread;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A future that runs each dependent in the {@link CallContext} that was current when the dependent was attached,
 * whichever thread completes the future. If there was no context at that time, the dependent runs without one. The
 * futures that the methods of this class return do the same. The only exception is the future that
 * {@link #minimalCompletionStage} returns.
 */
public class BoundFuture<T> extends RPCXFuture<T> {
    @Override
    public <U> CompletableFuture<U> newIncompleteFuture() {
        return new BoundFuture<>();
    }

    /**
     * Throws an exception if the calling thread is an event loop and this future has not ended. Waiting could last
     * forever, because the event loop can be the thread that has to complete this future.
     */
    private void refuseToBlock(String what) {
        if (!isDone()) {
            LoopThread.refuseOnLoop(what + " of a future that has not ended", "a dependent, such as thenApply");
        }
    }

    /**
     * Waits until this future ends, and returns the result.
     *
     * @throws IllegalStateException if an event loop calls this method before the future has ended
     */
    @Override
    public T join() {
        refuseToBlock("join");
        return super.join();
    }

    /**
     * Waits until this future ends, and returns the result.
     *
     * @throws IllegalStateException if an event loop calls this method before the future has ended
     */
    @Override
    public T get() throws InterruptedException, ExecutionException {
        refuseToBlock("get");
        return super.get();
    }

    /**
     * Waits until this future ends, at most for the given time, and returns the result.
     *
     * @throws IllegalStateException if an event loop calls this method before the future has ended
     */
    @Override
    public T get(long timeout, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException {
        refuseToBlock("get");
        return super.get(timeout, unit);
    }

    /**
     * Attaches an action that runs when this future ends. Unlike other dependents, the action is not bound to a
     * {@link CallContext}, so that this future does not keep the context in memory.
     */
    public void onEnd(BiConsumer<? super T, ? super Throwable> action) {
        super.whenComplete(action);
    }

    private static <A, R> Function<A, R> bound(Function<A, R> given) {
        Objects.requireNonNull(given);
        TimedContext context = CurrentCall.get();
        return value -> {
            TimedContext before = CurrentCall.swap(context);
            try {
                return given.apply(value);
            } finally {
                CurrentCall.swap(before);
            }
        };
    }

    private static <A, B, R> BiFunction<A, B, R> bound(BiFunction<A, B, R> given) {
        Objects.requireNonNull(given);
        TimedContext context = CurrentCall.get();
        return (value, other) -> {
            TimedContext before = CurrentCall.swap(context);
            try {
                return given.apply(value, other);
            } finally {
                CurrentCall.swap(before);
            }
        };
    }

    private static <A> Consumer<A> boundTo(Consumer<A> given) {
        Objects.requireNonNull(given);
        TimedContext context = CurrentCall.get();
        return value -> {
            TimedContext before = CurrentCall.swap(context);
            try {
                given.accept(value);
            } finally {
                CurrentCall.swap(before);
            }
        };
    }

    private static <A, B> BiConsumer<A, B> boundBoth(BiConsumer<A, B> given) {
        Objects.requireNonNull(given);
        TimedContext context = CurrentCall.get();
        return (value, other) -> {
            TimedContext before = CurrentCall.swap(context);
            try {
                given.accept(value, other);
            } finally {
                CurrentCall.swap(before);
            }
        };
    }

    private static Runnable bound(Runnable given) {
        return CurrentCall.wrap(given);
    }

    @Override
    public <U> CompletableFuture<U> thenApply(Function<? super T, ? extends U> fn) {
        return super.thenApply(bound(fn));
    }

    @Override
    public <U> CompletableFuture<U> thenApplyAsync(Function<? super T, ? extends U> fn) {
        return super.thenApplyAsync(bound(fn));
    }

    @Override
    public <U> CompletableFuture<U> thenApplyAsync(Function<? super T, ? extends U> fn, Executor executor) {
        return super.thenApplyAsync(bound(fn), executor);
    }

    @Override
    public CompletableFuture<Void> thenAccept(Consumer<? super T> action) {
        return super.thenAccept(boundTo(action));
    }

    @Override
    public CompletableFuture<Void> thenAcceptAsync(Consumer<? super T> action) {
        return super.thenAcceptAsync(boundTo(action));
    }

    @Override
    public CompletableFuture<Void> thenAcceptAsync(Consumer<? super T> action, Executor executor) {
        return super.thenAcceptAsync(boundTo(action), executor);
    }

    @Override
    public CompletableFuture<Void> thenRun(Runnable action) {
        return super.thenRun(bound(action));
    }

    @Override
    public CompletableFuture<Void> thenRunAsync(Runnable action) {
        return super.thenRunAsync(bound(action));
    }

    @Override
    public CompletableFuture<Void> thenRunAsync(Runnable action, Executor executor) {
        return super.thenRunAsync(bound(action), executor);
    }

    @Override
    public <U, V> CompletableFuture<V> thenCombine(
            CompletionStage<? extends U> other, BiFunction<? super T, ? super U, ? extends V> fn) {
        return super.thenCombine(other, bound(fn));
    }

    @Override
    public <U, V> CompletableFuture<V> thenCombineAsync(
            CompletionStage<? extends U> other, BiFunction<? super T, ? super U, ? extends V> fn) {
        return super.thenCombineAsync(other, bound(fn));
    }

    @Override
    public <U, V> CompletableFuture<V> thenCombineAsync(
            CompletionStage<? extends U> other, BiFunction<? super T, ? super U, ? extends V> fn, Executor executor) {
        return super.thenCombineAsync(other, bound(fn), executor);
    }

    @Override
    public <U> CompletableFuture<Void> thenAcceptBoth(
            CompletionStage<? extends U> other, BiConsumer<? super T, ? super U> action) {
        return super.thenAcceptBoth(other, boundBoth(action));
    }

    @Override
    public <U> CompletableFuture<Void> thenAcceptBothAsync(
            CompletionStage<? extends U> other, BiConsumer<? super T, ? super U> action) {
        return super.thenAcceptBothAsync(other, boundBoth(action));
    }

    @Override
    public <U> CompletableFuture<Void> thenAcceptBothAsync(
            CompletionStage<? extends U> other, BiConsumer<? super T, ? super U> action, Executor executor) {
        return super.thenAcceptBothAsync(other, boundBoth(action), executor);
    }

    @Override
    public CompletableFuture<Void> runAfterBoth(CompletionStage<?> other, Runnable action) {
        return super.runAfterBoth(other, bound(action));
    }

    @Override
    public CompletableFuture<Void> runAfterBothAsync(CompletionStage<?> other, Runnable action) {
        return super.runAfterBothAsync(other, bound(action));
    }

    @Override
    public CompletableFuture<Void> runAfterBothAsync(CompletionStage<?> other, Runnable action, Executor executor) {
        return super.runAfterBothAsync(other, bound(action), executor);
    }

    @Override
    public <U> CompletableFuture<U> applyToEither(CompletionStage<? extends T> other, Function<? super T, U> fn) {
        return super.applyToEither(other, bound(fn));
    }

    @Override
    public <U> CompletableFuture<U> applyToEitherAsync(CompletionStage<? extends T> other, Function<? super T, U> fn) {
        return super.applyToEitherAsync(other, bound(fn));
    }

    @Override
    public <U> CompletableFuture<U> applyToEitherAsync(
            CompletionStage<? extends T> other, Function<? super T, U> fn, Executor executor) {
        return super.applyToEitherAsync(other, bound(fn), executor);
    }

    @Override
    public CompletableFuture<Void> acceptEither(CompletionStage<? extends T> other, Consumer<? super T> action) {
        return super.acceptEither(other, boundTo(action));
    }

    @Override
    public CompletableFuture<Void> acceptEitherAsync(CompletionStage<? extends T> other, Consumer<? super T> action) {
        return super.acceptEitherAsync(other, boundTo(action));
    }

    @Override
    public CompletableFuture<Void> acceptEitherAsync(
            CompletionStage<? extends T> other, Consumer<? super T> action, Executor executor) {
        return super.acceptEitherAsync(other, boundTo(action), executor);
    }

    @Override
    public CompletableFuture<Void> runAfterEither(CompletionStage<?> other, Runnable action) {
        return super.runAfterEither(other, bound(action));
    }

    @Override
    public CompletableFuture<Void> runAfterEitherAsync(CompletionStage<?> other, Runnable action) {
        return super.runAfterEitherAsync(other, bound(action));
    }

    @Override
    public CompletableFuture<Void> runAfterEitherAsync(CompletionStage<?> other, Runnable action, Executor executor) {
        return super.runAfterEitherAsync(other, bound(action), executor);
    }

    @Override
    public <U> CompletableFuture<U> thenCompose(Function<? super T, ? extends CompletionStage<U>> fn) {
        return super.thenCompose(bound(fn));
    }

    @Override
    public <U> CompletableFuture<U> thenComposeAsync(Function<? super T, ? extends CompletionStage<U>> fn) {
        return super.thenComposeAsync(bound(fn));
    }

    @Override
    public <U> CompletableFuture<U> thenComposeAsync(
            Function<? super T, ? extends CompletionStage<U>> fn, Executor executor) {
        return super.thenComposeAsync(bound(fn), executor);
    }

    @Override
    public CompletableFuture<T> whenComplete(BiConsumer<? super T, ? super Throwable> action) {
        return super.whenComplete(boundBoth(action));
    }

    @Override
    public CompletableFuture<T> whenCompleteAsync(BiConsumer<? super T, ? super Throwable> action) {
        return super.whenCompleteAsync(boundBoth(action));
    }

    @Override
    public CompletableFuture<T> whenCompleteAsync(BiConsumer<? super T, ? super Throwable> action, Executor executor) {
        return super.whenCompleteAsync(boundBoth(action), executor);
    }

    @Override
    public <U> CompletableFuture<U> handle(BiFunction<? super T, Throwable, ? extends U> fn) {
        return super.handle(bound(fn));
    }

    @Override
    public <U> CompletableFuture<U> handleAsync(BiFunction<? super T, Throwable, ? extends U> fn) {
        return super.handleAsync(bound(fn));
    }

    @Override
    public <U> CompletableFuture<U> handleAsync(BiFunction<? super T, Throwable, ? extends U> fn, Executor executor) {
        return super.handleAsync(bound(fn), executor);
    }

    @Override
    public CompletableFuture<T> exceptionally(Function<Throwable, ? extends T> fn) {
        return super.exceptionally(bound(fn));
    }

    @Override
    public CompletableFuture<T> exceptionallyAsync(Function<Throwable, ? extends T> fn) {
        return super.exceptionallyAsync(bound(fn));
    }

    @Override
    public CompletableFuture<T> exceptionallyAsync(Function<Throwable, ? extends T> fn, Executor executor) {
        return super.exceptionallyAsync(bound(fn), executor);
    }

    @Override
    public CompletableFuture<T> exceptionallyCompose(Function<Throwable, ? extends CompletionStage<T>> fn) {
        return super.exceptionallyCompose(bound(fn));
    }

    @Override
    public CompletableFuture<T> exceptionallyComposeAsync(Function<Throwable, ? extends CompletionStage<T>> fn) {
        return super.exceptionallyComposeAsync(bound(fn));
    }

    @Override
    public CompletableFuture<T> exceptionallyComposeAsync(
            Function<Throwable, ? extends CompletionStage<T>> fn, Executor executor) {
        return super.exceptionallyComposeAsync(bound(fn), executor);
    }
}
