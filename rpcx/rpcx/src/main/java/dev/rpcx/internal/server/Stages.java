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
 * Lets calls wait for stages, and stop waiting before a stage ends. Thread-safe.
 *
 * <p>A callback cannot be detached from a {@code CompletionStage}. RPCX therefore attaches only one callback to a
 * stage, its {@code Hook}, which calls a list of {@code Waiter}s when the stage ends. Each call that waits for the
 * stage has a waiter in that list. A call that ends before the stage removes its waiter from the list.
 */
public final class Stages {
    /**
     * Unfinished stages to which RPCX has attached its callback, the {@link Hook}. Each stage is represented by its
     * {@link Entry}, which is both the key and the value in this map. The {@code Entry} is the list of the stage's
     * waiters. A waiter in the list usually refers to the stage strongly, but the {@code Entry} itself refers to the
     * stage weakly. So a stage whose list is empty can be garbage-collected. Any thread may change this map.
     */
    private static final Map<Object, Entry> HUNG = new ConcurrentHashMap<>();

    /** Entries of {@code HUNG} whose stages have been garbage-collected. The garbage collector adds these entries. */
    private static final ReferenceQueue<CompletionStage<?>> GONE = new ReferenceQueue<>();

    /**
     * Maximum number of entries that one call of {@code hang} removes from {@code HUNG} because their stages have been
     * garbage-collected. Two are enough, since each call of {@code hang} adds at most one entry.
     */
    private static final int MAX_REMOVED_AT_ONCE = 2;

    private Stages() {}

    /**
     * Returns whether the stage has ended. Returns false for every stage for which {@link #isPassive} returns false,
     * because such a stage may throw an exception when it is asked. An example is a stage that
     * {@link CompletableFuture#completedStage} has made.
     */
    static boolean isDone(CompletionStage<?> stage) {
        return isPassive(stage) && ((CompletableFuture<?>) stage).isDone();
    }

    /**
     * Returns whether an ended stage has the result null. Call this method only after {@link #isDone} has returned true
     * for the stage.
     */
    static boolean hasBroughtNull(CompletionStage<?> stage) {
        CompletableFuture<?> done = (CompletableFuture<?>) stage;
        return !done.isCompletedExceptionally() && done.join() == null;
    }

    /**
     * Returns whether attaching a callback to the stage certainly starts no work. A lazy stage of another library may
     * start its work when a callback is attached. The answer depends only on the class of the stage.
     */
    static boolean isPassive(CompletionStage<?> stage) {
        return stage instanceof BoundFuture<?> || stage.getClass() == CompletableFuture.class;
    }

    /** Attaches {@code consumer} to the stage. The stage calls the consumer when the stage ends. */
    private static void onEnd(CompletionStage<?> stage, BiConsumer<@Nullable Object, @Nullable Throwable> consumer) {
        if (stage instanceof BoundFuture<?> bound) {
            bound.onEnd(consumer);
        } else {
            stage.whenComplete(consumer);
        }
    }

    /** Returns whether the stage has any waiter besides the given one. */
    public static boolean hasOthers(CompletionStage<?> stage, Waiter than) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry != null && entry.hasOthers(than);
    }

    /**
     * Receives the result of one stage, unless the waiter stops waiting before the stage ends. A waiter is used only
     * once. The lock of the waiter guards {@code at}, {@code isAway} and {@code hook}.
     */
    abstract static class Waiter implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        /**
         * Previous waiter in the list of a stage's waiters; null if there is none. Guarded by that list, an
         * {@link Entry}.
         */
        private @Nullable Waiter previous;

        /**
         * Next waiter in the list of a stage's waiters; null if there is none. Guarded by that list, an {@link Entry}.
         */
        private @Nullable Waiter following;

        private @Nullable Entry at;

        private boolean isAway;

        /**
         * Callback that RPCX attached to the stage when this waiter was added; null if the stage already had RPCX's
         * callback.
         */
        private @Nullable Hook hook;

        /**
         * Starts to wait for the stage. This waiter may receive the result before the method returns, on the calling
         * thread or on the thread that ends the stage.
         */
        final void await(CompletionStage<?> stage) {
            if (isDone(stage)) {
                // the stage has ended, so it calls this waiter immediately and keeps no reference to the waiter
                onEnd(stage, this);
            } else {
                hang(stage, this);
            }
        }

        /**
         * Stops waiting for the stage. If the stage ends at the same moment, this waiter may still receive the result.
         */
        final void stopWaiting() {
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
         * Returns the callback that RPCX attached to the stage when RPCX added this waiter to the stage's list. Returns
         * null if RPCX had attached a callback before.
         *
         * <p>A waiter that stopped waiting early may never have been added to the list. For such a waiter, this method
         * attaches the callback now, and returns it. In two cases, this method attaches nothing and returns null:
         *
         * <ul>
         *   <li>The stage already has RPCX's callback.
         *   <li>{@code isPassive} does not accept the stage. If a callback were attached to a lazy stage, the stage
         *       might start its work on the calling thread.
         * </ul>
         */
        final @Nullable Hook hook(CompletionStage<?> stage) {
            synchronized (this) {
                if (at != null) {
                    return hook;
                }
            }
            // This waiter is in no list, because it stopped waiting before it was added. Usually no callback has been
            // attached for it either. Therefore one is attached here, unless that might start the work of a lazy stage.
            return isPassive(stage) ? hang(stage, null) : null;
        }

        /**
         * Adds this waiter to the list of a stage's waiters, unless this waiter has stopped waiting.
         *
         * @param entry list of the stage's waiters
         * @return false if the stage has ended; true if this waiter was added or has stopped waiting
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
     * Attaches RPCX's callback to the stage if the stage has none, and adds the waiter to the list of the stage's
     * waiters. A waiter that has stopped waiting is not added.
     *
     * @param waiter waiter to add; null to add none
     * @return the callback that this method has attached; null if RPCX had attached one before
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
            // The stage has ended, so its entry accepts no more waiters. The next round makes a new entry with a new
            // callback, which the ended stage calls immediately.
            HUNG.remove(entry, entry);
        }
    }

    /**
     * Attaches RPCX's callback to the stage, unless RPCX's callback is attached already. Two threads may both attach a
     * callback at the same time, which does no harm. No thread relies on another thread to attach the callback: if that
     * other thread failed, the stage would have no callback.
     *
     * @param waiter waiter for which the callback is attached; null if there is none
     * @return the callback that this method has attached; null if RPCX had attached one before
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
        for (int i = 0; i < MAX_REMOVED_AT_ONCE; i++) {
            Reference<?> gone = GONE.poll();
            if (gone == null) {
                return;
            }
            HUNG.remove(gone);
        }
    }

    /** Returns the number of unfinished stages to which RPCX has attached its callback. For tests. */
    public static int hung() {
        return HUNG.size();
    }

    /** Returns the number of waiters for the stage. For tests. */
    public static int waiting(CompletionStage<?> stage) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry == null ? 0 : entry.count();
    }

    /** Key by which the {@link Entry} of a stage is found in {@code HUNG}. */
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

    /** List of the waiters for one stage, in the order in which the waiters were added. Guarded by its own lock. */
    static final class Entry extends WeakReference<CompletionStage<?>> {
        private final int hash;
        private @Nullable Waiter first;
        private @Nullable Waiter last;
        private boolean isOver;

        /**
         * Whether RPCX's callback has been attached to the stage. Any thread may write and read this field without the
         * lock. A thread sets it only after it has attached the callback, so that no thread relies on another thread
         * that may fail: see {@link Stages#hook}.
         */
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
                // the waiter is not in the list any more: next() or an earlier call of this method has removed it
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
         * Removes the first waiter from the list. Called when the stage has ended. Once this method has been called,
         * {@code add} refuses new waiters.
         *
         * @return the removed waiter, which the caller has to call; null if the list is empty
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
     * Callback that RPCX attaches to a stage. When the stage ends, the hook calls all waiters for the stage. After
     * that, the hook releases the charge that it holds, if any.
     */
    static final class Hook implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        private final Entry entry;

        // The lock of this object guards the next two fields. The thread that ends the stage uses them in accept(), and
        // the thread that hands a charge over uses them in holdCharge().
        private @Nullable LingeringCharge lingeringCharge;
        private boolean isOver;

        private Hook(Entry entry) {
            this.entry = entry;
        }

        /**
         * Keeps a charge until the stage ends, and releases it then. If the stage has ended already, the charge is
         * released immediately.
         */
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
                    // the loop goes on, since the failure of one waiter must not keep the others from being called
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
