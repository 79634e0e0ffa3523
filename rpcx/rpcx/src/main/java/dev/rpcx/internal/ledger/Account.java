package dev.rpcx.internal.ledger;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts what one connection holds, as part of what its peer's address holds and of what its server or client holds.
 * What has been charged stays charged when the connection has ended, until the {@link Charge} is released: a handler
 * that goes on holds its request. Thread-safe.
 */
public final class Account {
    private static final LongSupplier NOTHING = () -> 0;

    private final Ledger ledger;
    public final Ledger.@Nullable Address address;
    public final AtomicLongArray held = new AtomicLongArray(Resource.values().length);
    private volatile LongSupplier underWay = NOTHING;

    /** Number of this connection among those of its address, or among those without an address. */
    private final int number;

    /** Creates an account for what belongs to no connection. */
    public Account(Ledger ledger) {
        this(ledger, null, 0);
    }

    /** @param number number of the connection among those of this address, or among those without an address */
    public Account(Ledger ledger, Ledger.@Nullable Address address, int number) {
        this.ledger = ledger;
        this.address = address;
        this.number = number;
    }

    /** Group of peers that a call of this connection belongs to, if it comes now; see {@link AddressGroups}. */
    public int group() {
        return ledger.groups().groupOf(address == null ? number : address.groupIndex, number);
    }

    /** Creates a charge for an owner that holds some of {@code kind} now and then. */
    public Charge charge(Resource kind) {
        return new Charge(this, kind);
    }

    /** The claims of all connections on this kind. */
    Claims claims(Resource kind) {
        return ledger.claims(kind);
    }

    public boolean tryCharge(Resource kind, long amount) {
        return ledger.tryCharge(this, kind, amount);
    }

    public void release(Resource kind, long amount) {
        ledger.release(this, kind, amount);
    }

    public UnchargedAllowance uncharged() {
        return ledger.uncharged();
    }

    /** See {@link Ledger#leave}. */
    public LingeringCharge leave(Object holder, long objectBytes, int places) {
        return ledger.leave(this, holder, objectBytes, places);
    }

    public long held(Resource kind) {
        return held.get(kind.ordinal());
    }

    /** Says whether this connection holds more than an eighth of the most that one connection can hold. */
    public boolean holdsMuch(Resource kind) {
        return held(kind) > ledger.mostOfConnection(kind) / 8;
    }

    /** Says whether all connections together hold more than half of the limit of {@code kind}. */
    public boolean isHalfTaken(Resource kind) {
        return ledger.isHalfTaken(kind);
    }

    /**
     * Sets the counter by which the connection counts its calls under way. Its value has to be zero when all is quiet.
     */
    public void setCallCounter(LongSupplier calls) {
        underWay = calls;
    }

    long callCount() {
        return underWay.getAsLong();
    }

    /**
     * The connection is over. What stays charged to this account, such as a {@link LingeringCharge}, does not hold the
     * connection. A second call does nothing.
     */
    public void close() {
        ledger.closed(this);
        underWay = NOTHING;
    }
}
