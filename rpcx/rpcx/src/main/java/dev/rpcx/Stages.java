package dev.rpcx;

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
 * The stages that handlers have returned and that have not ended, each with one hook of ours, and those who wait for
 * them. A stage holds whatever has been hung on it until it ends, and there is no way to take it off. So a call hangs
 * nothing on a stage itself: it waits at the stage's one hook, and whoever waits no longer is taken out. A stage that
 * many calls share, or that outlasts them, holds one hook, however many have waited for it. Thread-safe.
 */
final class Stages {
    /** Each is its own key. A stage is held by nothing here, so that it can be collected with its hook. */
    private static final Map<Object, Entry> HUNG = new ConcurrentHashMap<>();

    /** The collector puts the keys here whose stages nobody can reach any more. */
    private static final ReferenceQueue<CompletionStage<?>> GONE = new ReferenceQueue<>();

    /** Gone stages that each look for a stage takes out: more than can come by it. */
    private static final int GONE_AT_ONCE = 2;

    private Stages() {}

    /**
     * Says whether the stage has ended, where it can be asked. A {@link CompletableFuture#completedStage} is of a class
     * that throws when it is asked, and who has made another class may do so too: these are taken for open.
     */
    static boolean isDone(CompletionStage<?> stage) {
        return isPassive(stage) && ((CompletableFuture<?>) stage).isDone();
    }

    /** Says whether a stage has brought null. The stage has ended, as {@link #isDone} says. */
    static boolean hasBroughtNull(CompletionStage<?> stage) {
        CompletableFuture<?> done = (CompletableFuture<?>) stage;
        return !done.isCompletedExceptionally() && done.join() == null;
    }

    /** Says whether the stage is of a class that does nothing when something is hung on it, unless it has ended. */
    static boolean isPassive(CompletionStage<?> stage) {
        return stage instanceof BoundFuture<?> || stage.getClass() == CompletableFuture.class;
    }

    /** Has what is ours told of the stage's end. */
    private static void onEnd(CompletionStage<?> stage, BiConsumer<@Nullable Object, @Nullable Throwable> told) {
        if (stage instanceof BoundFuture<?> bound) {
            bound.onEnd(told);
        } else {
            stage.whenComplete(told);
        }
    }

    /** Says whether somebody else than this waiter waits for the stage. */
    static boolean hasOthers(CompletionStage<?> stage, Waiter than) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry != null && entry.hasOthers(than);
    }

    /** Waits for one stage, once. Its own lock guards its place. */
    abstract static class Waiter implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        /** Neighbours at the hook; guarded by its entry. */
        private @Nullable Waiter previous;

        private @Nullable Waiter following;
        private @Nullable Entry at;

        private boolean isAway;

        /** Hung on the stage for this waiter; null where another one's was there. */
        private @Nullable Hook hook;

        /** Waits from here on: the end may be told within this, on this thread or on the one that ends the stage. */
        final void await(CompletionStage<?> stage) {
            if (isDone(stage)) {
                // nothing stays on it
                onEnd(stage, this);
            } else {
                hang(stage, this);
            }
        }

        /** Waits no longer. The end may just be about to be told. */
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
         * The hook that is on the stage because of this waiter; null where it is another one's. Nothing is hung here on
         * a stage that may work then: that is done where the handler runs, by {@link #await}.
         */
        final @Nullable Hook hook(CompletionStage<?> stage) {
            synchronized (this) {
                if (at != null) {
                    return hook;
                }
            }
            // it has left before it came to the hook
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
     * Sees to it that the stage has a hook, and that the waiter, if there is one, is at it.
     *
     * @return the hook if it has been hung by this
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
            // it has ended just now
            HUNG.remove(entry, entry);
        }
    }

    /** Whoever finds that no hook is there hangs one: the thread that was about to may have failed. */
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

    /** Stages with a hook. For tests. */
    static int hung() {
        return HUNG.size();
    }

    /** Those who wait for this stage. For tests. */
    static int waiting(CompletionStage<?> stage) {
        Entry entry = HUNG.get(new Probe(stage));
        return entry == null ? 0 : entry.count();
    }

    /** Finds an entry by its stage. */
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

    /** Those who wait for one stage, in the order in which they came. Guarded by itself. */
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
                // it has been told, or is about to be
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

        synchronized boolean hasOthers(Waiter than) {
            return first != null && (first != than || last != than);
        }

        synchronized int count() {
            int count = 0;
            for (Waiter each = first; each != null; each = each.following) {
                count++;
            }
            return count;
        }

        /** @return the next to be told; from here on nobody can be added */
        synchronized @Nullable Waiter next() {
            isOver = true;
            Waiter told = first;
            if (told != null) {
                remove(told);
            }
            return told;
        }
    }

    /** What hangs on a stage. It tells those who wait then, and gives back what stays charged until then. */
    static final class Hook implements BiConsumer<@Nullable Object, @Nullable Throwable> {
        private final Entry entry;
        private @Nullable Leftover leftover;
        private boolean isOver;

        private Hook(Entry entry) {
            this.entry = entry;
        }

        /** This stays charged until the stage ends: not at all, where it has ended meanwhile. */
        void leave(Leftover left) {
            synchronized (this) {
                if (!isOver) {
                    leftover = left;
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
                    // the others hear of it all the same
                    ThreadTools.report(e);
                }
            }
            Leftover left;
            synchronized (this) {
                isOver = true;
                left = leftover;
                leftover = null;
            }
            if (left != null) {
                left.end();
            }
        }
    }
}
