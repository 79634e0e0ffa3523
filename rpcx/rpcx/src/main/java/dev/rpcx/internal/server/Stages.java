package dev.rpcx.internal.server;

import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.call.BoundFuture;
import dev.rpcx.internal.ledger.LingeringCharge;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Lets calls wait for stages. A call waits for the stage that its handler has returned, and stops waiting when the call
 * ends earlier. A dependent cannot be removed from a stage, so RPCX attaches only one to each stage, a {@code Hook}.
 * Calls wait at the hook, as a {@code Waiter}, and can be removed there. So a stage that many calls share holds one
 * hook, and not one for each call. Thread-safe.
 */
public final class Stages {
    /**
     * Entries of the stages that have a hook. Each entry is also its own key. An entry refers to its stage weakly, so
     * that the stage can be collected together with its hook.
     */
    private static final Map<Object, Entry> HUNG = new ConcurrentHashMap<>();

    /** Entries whose stages have been collected. */
    private static final ReferenceQueue<CompletionStage<?>> GONE = new ReferenceQueue<>();

    /**
     * Maximum number of entries of collected stages that each call of {@code hang} removes. Each call adds at most one.
     */
    private static final int GONE_AT_ONCE = 2;

    private Stages() {}

    /**
     * Returns whether the stage has ended; false if this is not known. A stage of
     * {@link CompletableFuture#completedStage}, or of a user's class, may throw when it is asked, so it is not asked.
     */
    static boolean isDone(CompletionStage<?> stage) {
        return isPassive(stage) && ((CompletableFuture<?>) stage).isDone();
    }

    /**
     * Returns whether a stage has ended with the result null. {@link #isDone} must have returned true for the stage.
     */
    static boolean hasBroughtNull(CompletionStage<?> stage) {
        CompletableFuture<?> done = (CompletableFuture<?>) stage;
        return !done.isCompletedExceptionally() && done.join() == null;
    }

    /**
     * Returns whether attaching a dependent surely starts no work of the stage itself. A lazy stage of another library
     * may start its work when a dependent is attached. The result depends only on the stage's class.
     */
    static boolean isPassive(CompletionStage<?> stage) {
        return stage instanceof BoundFuture<?> || stage.getClass() == CompletableFuture.class;
    }

    /** Attaches one of RPCX's own consumers to the stage. The stage calls this consumer when it ends. */
    private static void onEnd(CompletionStage<?> stage, BiConsumer<@Nullable Object, @Nullable Throwable> consumer) {
        if (stage instanceof BoundFuture<?> bound) {
            bound.onEnd(consumer);
        } else {
            stage.whenComplete(consumer);
        }
    }

    /** Returns whether any waiter other than {@code than} waits for the stage. */
    public static boolean hasOthers(CompletionStage<?> stage, Waiter than) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry != null && entry.hasOthers(than);
    }

    /**
     * Waits for one stage, and can be used only once. The waiter's own lock guards the fields {@code at},
     * {@code isAway} and {@code hook}.
     */
    abstract static class Waiter implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        /** Previous waiter for the same stage; null if there is none. Guarded by the entry. */
        private @Nullable Waiter previous;

        /** Next waiter for the same stage; null if there is none. Guarded by the entry. */
        private @Nullable Waiter following;

        private @Nullable Entry at;

        private boolean isAway;

        /** Hook that was attached for this waiter; null if the stage had a hook already. */
        private @Nullable Hook hook;

        /**
         * Begins to wait. The waiter may be called before this method returns, on the calling thread or on the thread
         * that ends the stage.
         */
        final void await(CompletionStage<?> stage) {
            if (isDone(stage)) {
                // a stage that has ended calls the waiter now, and keeps nothing attached
                onEnd(stage, this);
            } else {
                hang(stage, this);
            }
        }

        /** Stops waiting. If the stage ends at the same time, the waiter may still be called. */
        final void leave() {
            Entry entry;
            synchronized (this) {
                isAway = true;
                entry = at;
            }
            if (entry != null) {
                entry.remove(this);
            }
        }

        /**
         * Returns the hook that was attached for this waiter; null if another waiter's hook was there already. If this
         * waiter stopped waiting before it was added at a hook, attaches one now, but only to a stage that
         * {@code isPassive} accepts. For other stages returns null: a lazy stage may start work on the calling thread,
         * so only {@link #await} attaches a hook to it.
         */
        final @Nullable Hook hook(CompletionStage<?> stage) {
            synchronized (this) {
                if (at != null) {
                    return hook;
                }
            }
            // the waiter stopped waiting before it was added at the hook
            return isPassive(stage) ? hang(stage, null) : null;
        }

        /**
         * Adds this waiter at an entry, unless the waiter has stopped waiting.
         *
         * @return false if the stage has ended; true if the waiter was added or has stopped waiting
         */
        final synchronized boolean addAt(Entry entry) {
            if (isAway) {
                return true;
            }
            if (!entry.add(this)) {
                return false;
            }
            at = entry;
            return true;
        }

        private synchronized void hung(Hook made) {
            hook = made;
        }
    }

    /**
     * Attaches a hook to the stage if it has none, and adds the waiter, unless it is null or has stopped waiting.
     *
     * @return the hook, if this method has attached it; otherwise null
     */
    private static @Nullable Hook hang(CompletionStage<?> stage, @Nullable Waiter waiter) {
        forgetGone();
        while (true) {
            Entry entry = HUNG.get(new Probe(stage));
            if (entry == null) {
                Entry made = new Entry(stage);
                entry = HUNG.putIfAbsent(made, made);
                if (entry == null) {
                    entry = made;
                }
            }
            if (waiter == null || waiter.addAt(entry)) {
                return hook(stage, entry, waiter);
            }
            // the stage has ended in the meantime
            HUNG.remove(entry, entry);
        }
    }

    /**
     * Attaches a hook to the stage, if it has none. Two threads at the same time may both attach one: if one of them
     * waited for the other, and the other failed, there would be no hook.
     *
     * @return the hook, if this method has attached it; otherwise null
     */
    private static @Nullable Hook hook(CompletionStage<?> stage, Entry entry, @Nullable Waiter waiter) {
        if (entry.isHung) {
            return null;
        }
        Hook made = new Hook(entry);
        if (waiter != null) {
            waiter.hung(made);
        }
        onEnd(stage, made);
        entry.isHung = true;
        return made;
    }

    private static void forgetGone() {
        for (int i = 0; i < GONE_AT_ONCE; i++) {
            Reference<?> gone = GONE.poll();
            if (gone == null) {
                return;
            }
            HUNG.remove(gone);
        }
    }

    /** Returns the number of stages with a hook. For tests. */
    public static int hung() {
        return HUNG.size();
    }

    /** Returns the number of waiters for this stage. For tests. */
    public static int waiting(CompletionStage<?> stage) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry == null ? 0 : entry.count();
    }

    /** Key by which an entry is found for a stage. */
    private static final class Probe {
        private final CompletionStage<?> stage;

        Probe(CompletionStage<?> stage) {
            this.stage = stage;
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(stage);
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return other instanceof Entry entry && entry.refersTo(stage);
        }
    }

    /** Waiters for one stage, in the order in which they came. Guarded by {@code this}. */
    static final class Entry extends WeakReference<CompletionStage<?>> {
        private final int hash;
        private @Nullable Waiter first;
        private @Nullable Waiter last;
        private boolean isOver;
        volatile boolean isHung;

        Entry(CompletionStage<?> stage) {
            super(stage, GONE);
            hash = System.identityHashCode(stage);
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(@Nullable Object other) {
            if (other == this) {
                return true;
            }
            CompletionStage<?> stage = get();
            return stage != null && other instanceof Entry entry && entry.refersTo(stage);
        }

        /**
         * Adds a waiter after the others.
         *
         * @return false if the stage has ended
         */
        synchronized boolean add(Waiter waiter) {
            if (isOver) {
                return false;
            }
            Waiter before = last;
            waiter.previous = before;
            if (before == null) {
                first = waiter;
            } else {
                before.following = waiter;
            }
            last = waiter;
            return true;
        }

        synchronized void remove(Waiter waiter) {
            Waiter before = waiter.previous;
            Waiter after = waiter.following;
            if (before == null && waiter != first) {
                // the waiter has been called, or is about to be
                return;
            }
            if (before == null) {
                first = after;
            } else {
                before.following = after;
            }
            if (after == null) {
                last = before;
            } else {
                after.previous = before;
            }
            waiter.previous = null;
            waiter.following = null;
        }

        public synchronized boolean hasOthers(Waiter than) {
            return first != null && (first != than || last != than);
        }

        synchronized int count() {
            int count = 0;
            for (Waiter each = first; each != null; each = each.following) {
                count++;
            }
            return count;
        }

        /**
         * Removes the first waiter. From the first call on, no waiter can be added.
         *
         * @return the removed waiter, which the caller has to call; null if there is none
         */
        synchronized @Nullable Waiter next() {
            isOver = true;
            Waiter removed = first;
            if (removed != null) {
                remove(removed);
            }
            return removed;
        }
    }

    /** Dependent of a stage. When the stage ends, calls the waiters, and then releases the charge, if there is one. */
    static final class Hook implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        private final Entry entry;
        private @Nullable LingeringCharge lingeringCharge;
        private boolean isOver;

        private Hook(Entry entry) {
            this.entry = entry;
        }

        /** Holds the charge until the stage ends. If the stage has ended already, releases the charge now. */
        void holdCharge(LingeringCharge charge) {
            synchronized (this) {
                if (!isOver) {
                    lingeringCharge = charge;
                    return;
                }
            }
            charge.end();
        }

        @Override
        public void accept(@Nullable Object value, @Nullable Throwable thrown) {
            HUNG.remove(entry);
            for (Waiter waiter = entry.next(); waiter != null; waiter = entry.next()) {
                try {
                    waiter.accept(value, thrown);
                } catch (Throwable e) {
                    // the other waiters are called nevertheless
                    ThreadTools.report(e);
                }
            }
            LingeringCharge charge;
            synchronized (this) {
                isOver = true;
                charge = lingeringCharge;
                lingeringCharge = null;
            }
            if (charge != null) {
                charge.end();
            }
        }
    }
}
