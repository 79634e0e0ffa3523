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
 * Stages that handlers have returned and that have not ended, each with one hook of this library, and the waiters for
 * them. A stage holds whatever has been attached to it until it ends, and nothing can be detached. So a call attaches
 * nothing to a stage itself: it waits at the stage's one hook, and a waiter that waits no longer is taken out there. A
 * stage that many calls share, or that outlasts them, holds one hook, however many have waited for it. Thread-safe.
 */
public final class Stages {
    /**
     * Entries of the stages that have a hook; each entry is its own key. An entry refers to its stage weakly, so that
     * the stage can be collected with its hook.
     */
    private static final Map<Object, Entry> HUNG = new ConcurrentHashMap<>();

    /** Queue into which the garbage collector puts the entries whose stages nobody can reach any more. */
    private static final ReferenceQueue<CompletionStage<?>> GONE = new ReferenceQueue<>();

    /** Maximum number of entries of collected stages that each {@code hang} removes: more than it can add. */
    private static final int GONE_AT_ONCE = 2;

    private Stages() {}

    /**
     * Says whether the stage has ended, where it can be asked. A {@link CompletableFuture#completedStage} is of a class
     * that throws when it is asked, and classes of users may do so too: stages of such classes are taken for open.
     */
    static boolean isDone(CompletionStage<?> stage) {
        return isPassive(stage) && ((CompletableFuture<?>) stage).isDone();
    }

    /** Says whether a stage has brought null. The stage has ended, as {@link #isDone} says. */
    static boolean hasBroughtNull(CompletionStage<?> stage) {
        CompletableFuture<?> done = (CompletableFuture<?>) stage;
        return !done.isCompletedExceptionally() && done.join() == null;
    }

    /**
     * Says whether the stage is of a class that does nothing when a dependent is attached, unless the stage has ended.
     */
    static boolean isPassive(CompletionStage<?> stage) {
        return stage instanceof BoundFuture<?> || stage.getClass() == CompletableFuture.class;
    }

    /** Attaches a consumer of this library to the stage's end. */
    private static void onEnd(CompletionStage<?> stage, BiConsumer<@Nullable Object, @Nullable Throwable> told) {
        if (stage instanceof BoundFuture<?> bound) {
            bound.onEnd(told);
        } else {
            stage.whenComplete(told);
        }
    }

    /** Says whether any other waiter than this one waits for the stage. */
    public static boolean hasOthers(CompletionStage<?> stage, Waiter than) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry != null && entry.hasOthers(than);
    }

    /** Waits for one stage, once. Its own lock guards where it waits. */
    abstract static class Waiter implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        /** Neighbours at the hook; guarded by the entry at which the waiter waits. */
        private @Nullable Waiter previous;

        private @Nullable Waiter following;
        private @Nullable Entry at;

        private boolean isAway;

        /** Hook that was attached to the stage for this waiter; null where another waiter's was there. */
        private @Nullable Hook hook;

        /**
         * Begins to wait. The stage's end may be told within this method, on this thread or on the one that ends the
         * stage.
         */
        final void await(CompletionStage<?> stage) {
            if (isDone(stage)) {
                // nothing stays attached to a stage that has ended
                onEnd(stage, this);
            } else {
                hang(stage, this);
            }
        }

        /** Stops waiting. The stage's end may just be about to be told all the same. */
        final void leave() {
            Entry left;
            synchronized (this) {
                isAway = true;
                left = at;
            }
            if (left != null) {
                left.remove(this);
            }
        }

        /**
         * Hook that is on the stage because of this waiter; null where it is another waiter's. This method attaches
         * nothing to a stage that may do work then: {@link #await} does that, where the handler runs.
         */
        final @Nullable Hook hook(CompletionStage<?> stage) {
            synchronized (this) {
                if (at != null) {
                    return hook;
                }
            }
            // the waiter has left before it came to the hook
            return isPassive(stage) ? hang(stage, null) : null;
        }

        /** @return false if the stage has ended */
        final synchronized boolean isAdded(Entry entry) {
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
     * Makes sure that the stage has a hook, and that the waiter, if there is one, waits there.
     *
     * @return the hook, if this method has attached one
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
            if (waiter == null || waiter.isAdded(entry)) {
                return hook(stage, entry, waiter);
            }
            // the stage has ended just now
            HUNG.remove(entry, entry);
        }
    }

    /**
     * Attaches a hook, if there is none. Each thread that finds none does so, since the thread that was about to may
     * have failed.
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

    /** Number of stages with a hook. For tests. */
    public static int hung() {
        return HUNG.size();
    }

    /** Number of waiters for this stage. For tests. */
    public static int waiting(CompletionStage<?> stage) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry == null ? 0 : entry.count();
    }

    /** Key that finds an entry by its stage. */
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

        /** @return false if the stage has ended */
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
                // the waiter has been told, or is about to be
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
         * Removes the first waiter.
         *
         * @return that waiter, which is the next to be told, or null; from here on none can be added
         */
        synchronized @Nullable Waiter next() {
            isOver = true;
            Waiter told = first;
            if (told != null) {
                remove(told);
            }
            return told;
        }
    }

    /**
     * Consumer that is attached to a stage. At the stage's end it tells the waiters, and gives back what stays charged
     * until then.
     */
    static final class Hook implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        private final Entry entry;
        private @Nullable LingeringCharge lingeringCharge;
        private boolean isOver;

        private Hook(Entry entry) {
            this.entry = entry;
        }

        /** Keeps the charge until the stage ends, or gives it back where the stage has ended meanwhile. */
        void leave(LingeringCharge left) {
            synchronized (this) {
                if (!isOver) {
                    lingeringCharge = left;
                    return;
                }
            }
            left.end();
        }

        @Override
        public void accept(@Nullable Object value, @Nullable Throwable thrown) {
            HUNG.remove(entry);
            for (Waiter told = entry.next(); told != null; told = entry.next()) {
                try {
                    told.accept(value, thrown);
                } catch (Throwable e) {
                    // the other waiters are told all the same
                    ThreadTools.report(e);
                }
            }
            LingeringCharge left;
            synchronized (this) {
                isOver = true;
                left = lingeringCharge;
                lingeringCharge = null;
            }
            if (left != null) {
                left.end();
            }
        }
    }
}
