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
 * Lets calls wait for stages, and stop waiting if the call ends first. Thread-safe.
 *
 * <p>A callback that was attached to a stage cannot be removed. RPCX therefore attaches only one callback to a stage,
 * its {@code Hook}, however many calls wait for the stage. Each of these calls has a {@code Waiter} in a list of RPCX's
 * own, and can be removed from that list.
 */
public final class Stages {
    /**
     * Entries of the stages to which RPCX has attached its callback, the {@link Hook}. Each entry is its own key. An
     * entry refers to its stage weakly, so that a stage can be garbage-collected together with its hook.
     */
    private static final Map<Object, Entry> HUNG = new ConcurrentHashMap<>();

    /** Queue to which the garbage collector adds the entries of collected stages. */
    private static final ReferenceQueue<CompletionStage<?>> GONE = new ReferenceQueue<>();

    /**
     * Maximum number of entries of collected stages that one call of {@code hang} removes. Two are enough, since each
     * call adds at most one entry.
     */
    private static final int GONE_AT_ONCE = 2;

    private Stages() {}

    /**
     * Returns whether the stage has ended; false if this is unknown. Only a stage that {@link #isPassive} accepts is
     * asked. Any other stage may throw when it is asked, for example one of a user's class, or of
     * {@link CompletableFuture#completedStage}.
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
     * Returns whether attaching a callback to the stage certainly starts no work. A lazy stage of another library may
     * start its work at that moment. The answer depends only on the class of the stage.
     */
    static boolean isPassive(CompletionStage<?> stage) {
        return stage instanceof BoundFuture<?> || stage.getClass() == CompletableFuture.class;
    }

    /** Attaches a callback of RPCX's own to the stage. The stage calls it when it ends. */
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
     * Receives the result of one stage, unless it stops waiting first. A waiter is used only once. Its own lock guards
     * {@code at}, {@code isAway} and {@code hook}.
     */
    abstract static class Waiter implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        /** Previous waiter for the same stage; null if there is none. Guarded by the {@link Entry} of the stage. */
        private @Nullable Waiter previous;

        /** Next waiter for the same stage; null if there is none. Guarded by the {@link Entry} of the stage. */
        private @Nullable Waiter following;

        private @Nullable Entry at;

        private boolean isAway;

        /** Callback that was attached to the stage for this waiter; null if the stage had RPCX's callback already. */
        private @Nullable Hook hook;

        /**
         * Starts to wait for the stage. The result may be received before this method returns, on the calling thread or
         * on the thread that ends the stage.
         */
        final void await(CompletionStage<?> stage) {
            if (isDone(stage)) {
                // a stage that has ended calls the waiter now, and keeps nothing attached
                onEnd(stage, this);
            } else {
                hang(stage, this);
            }
        }

        /** Stops waiting. If the stage ends at the same moment, this waiter may still receive the result. */
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
         * Returns RPCX's callback at the stage if it was attached for this waiter. Returns null if the stage had the
         * callback already. If this waiter stopped waiting before it was in the list of the stage, the callback is
         * attached now, but only to a stage that {@code isPassive} accepts. For any other stage the result is null,
         * since a lazy stage might start its work on the calling thread.
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
         * Adds this waiter to the list of a stage, unless the waiter has stopped waiting.
         *
         * @param entry list of the stage's waiters
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
     * Attaches RPCX's callback to the stage if it has none, and adds a waiter to the stage's list. A waiter that has
     * stopped waiting is not added.
     *
     * @param waiter waiter to add; null if there is none
     * @return the callback, if this method has attached it; otherwise null
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
     * Attaches RPCX's callback to the stage if it has none. Two threads that call this at the same time may both attach
     * one. If one waited for the other instead, and the other failed, the stage would have no callback.
     *
     * @param waiter waiter for which the callback is attached; null if there is none
     * @return the callback, if this method has attached it; otherwise null
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

    /** Returns the number of stages that have RPCX's callback. For tests. */
    public static int hung() {
        return HUNG.size();
    }

    /** Returns the number of waiters for the stage. For tests. */
    public static int waiting(CompletionStage<?> stage) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry == null ? 0 : entry.count();
    }

    /** Key with which the entry of a stage is looked up in {@code HUNG}. */
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

    /** List of the waiters for one stage, in the order in which they came. Guarded by its own lock. */
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
         * Adds a waiter at the end of the list.
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
         * Removes the first waiter from the list, since the stage has ended. From the first call on, {@code add}
         * refuses waiters.
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

    /**
     * RPCX's callback at a stage. When the stage ends, it calls all waiters for the stage, and then releases the charge
     * that it holds, if any.
     */
    static final class Hook implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        private final Entry entry;
        private @Nullable LingeringCharge lingeringCharge;
        private boolean isOver;

        private Hook(Entry entry) {
            this.entry = entry;
        }

        /** Holds a charge until the stage ends. If the stage has ended already, the charge is released immediately. */
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
