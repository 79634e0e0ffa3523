package dev.rpcx;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * What one connection holds, as part of what its peer's address holds and of what its server or client holds.
 * Thread-safe. What has been charged stays charged when the connection has ended, until the {@link Charge} is released:
 * a handler that goes on holds its request.
 */
final class Account {
    private static final LongSupplier NOTHING = () -> 0;

    private final Ledger ledger;
    final Ledger.@Nullable Address address;
    final AtomicLongArray held = new AtomicLongArray(Resource.values().length);
    private volatile LongSupplier underWay = NOTHING;

    /** Counts the connections of an address, or those that have none. */
    private final int number;

    /** One that holds what is no connection's. */
    Account(Ledger ledger) {
        this(ledger, null, 0);
    }

    /** @param number counts the connections of this address, or those that have none */
    Account(Ledger ledger, Ledger.@Nullable Address address, int number) {
        this.ledger = ledger;
        this.address = address;
        this.number = number;
    }

    /** The group of peers that a call of this connection is of, if it comes now; see {@link AddressGroups}. */
    int group() {
        return ledger.groups().groupOf(address == null ? number : address.place, number);
    }

    /** For an owner who holds some of this now and then. */
    Charge charge(Resource kind) {
        return new Charge(this, kind);
    }

    /** The claims of all connections on this kind. */
    Claims claims(Resource kind) {
        return ledger.claims(kind);
    }

    boolean take(Resource kind, long amount) {
        return ledger.take(this, kind, amount);
    }

    void give(Resource kind, long amount) {
        ledger.give(this, kind, amount);
    }

    Uncharged uncharged() {
        return ledger.uncharged();
    }

    /** See {@link Ledger#leave}. */
    Leftover leave(Object holder, long objectBytes, int places) {
        return ledger.leave(this, holder, objectBytes, places);
    }

    long held(Resource kind) {
        return held.get(kind.ordinal());
    }

    /** Whether this connection holds more than an eighth of what one may at most. */
    boolean holdsMuch(Resource kind) {
        return held(kind) > ledger.mostOfConnection(kind) / 8;
    }

    /** Whether all connections together hold more than half of what there is of this. */
    boolean isHalfTaken(Resource kind) {
        return ledger.isHalfTaken(kind);
    }

    /** How many calls are under way on this connection, as its owner counts them; to be zero when all is quiet. */
    void watch(LongSupplier calls) {
        underWay = calls;
    }

    long watched() {
        return underWay.getAsLong();
    }

    /**
     * The connection is over, and is not held by what stays charged to it, such as a {@link Leftover}. A second time
     * does nothing.
     */
    void close() {
        ledger.closed(this);
        underWay = NOTHING;
    }
}
