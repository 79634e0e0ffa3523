package dev.rpcx.internal.ledger;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts what one connection holds, and adds it to what the peer's address and the whole server or client hold. Charges
 * stay after the end of the connection until each {@link Charge} is released: a running handler still holds its
 * request. Thread-safe.
 */
public final class Account {
    private static final LongSupplier NOTHING = () -> 0;

    private final Ledger ledger;
    public final Ledger.@Nullable Address address;
    public final AtomicLongArray held = new AtomicLongArray(Resource.values().length);
    private volatile LongSupplier underWay = NOTHING;

    /** Number of this connection within its address, or among the connections without an address. */
    private final int number;

    /** Creates an account for what belongs to no connection. */
    public Account(Ledger ledger) {
        this(ledger, null, 0);
    }

    /**
     * Creates the account of a connection.
     *
     * @param address address of the peer; null if it has none
     * @param number number of the connection among the connections of this address, or among the connections without an
     *     address
     */
    public Account(Ledger ledger, Ledger.@Nullable Address address, int number) {
        this.ledger = ledger;
        this.address = address;
        this.number = number;
    }

    /** Returns the id of the current group of this connection's calls, see {@link AddressGroups}. */
    public int group() {
        return ledger.groups().groupOf(address == null ? number : address.groupIndex, number);
    }

    /** Creates a charge with which its owner charges what it holds of {@code kind}. */
    public Charge charge(Resource kind) {
        return new Charge(this, kind);
    }

    /** Returns the claims of all connections of this server or client on {@code kind}. */
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

    /** Leaves a charge behind for a call that has been given up: see {@link Ledger#leaveCharge}. */
    public LingeringCharge leaveCharge(Object holder, long objectBytes, int places) {
        return ledger.leaveCharge(this, holder, objectBytes, places);
    }

    public long held(Resource kind) {
        return held.get(kind.ordinal());
    }

    /**
     * Whether this connection holds more than an eighth of what one connection can hold of {@code kind}. If so, a
     * client releases the charged buffer of a request as soon as the request has been sent. The buffer of a notice is
     * always kept.
     */
    public boolean holdsMuch(Resource kind) {
        return held(kind) > ledger.maxOfConnection(kind) / 8;
    }

    /** Says whether all connections together hold more than half of the limit of {@code kind}. */
    public boolean isHalfTaken(Resource kind) {
        return ledger.isHalfTaken(kind);
    }

    /**
     * Sets the counter of the connection's calls. The counter has to be zero when no call is under way, which
     * {@code Ledger.audit} checks.
     */
    public void setCallCounter(LongSupplier calls) {
        underWay = calls;
    }

    long callCount() {
        return underWay.getAsLong();
    }

    /**
     * Ends the account when the connection is over. Remaining charges, such as a {@link LingeringCharge}, do not keep
     * the connection in memory. A second call does nothing.
     */
    public void close() {
        ledger.closed(this);
        underWay = NOTHING;
    }
}
