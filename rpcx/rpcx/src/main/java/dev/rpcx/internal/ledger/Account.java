package dev.rpcx.internal.ledger;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts what one connection holds of each {@link Resource}, except {@link Resource#CONNECTIONS} and
 * {@link Resource#HANDLERS}. The same amounts count for the peer's address and for the whole server or client too. A
 * {@link Charge} can outlast the connection, because a running handler still holds its request. This class is
 * thread-safe.
 */
public final class Account {
    private static final LongSupplier NOTHING = () -> 0;

    private final Ledger ledger;
    public final Ledger.@Nullable Address address;

    /** Amounts held, by the ordinal of the resource. Any thread may charge and release. */
    public final AtomicLongArray held = new AtomicLongArray(Resource.values().length);

    /** Counter of the calls under way. The connection's event loop writes the field, and threads of tests read it. */
    private volatile LongSupplier underWay = NOTHING;

    /**
     * Number of the connection, counted from 0 for each address of a peer. Connections without an address are counted
     * together.
     */
    private final int number;

    /** Creates an account for charges that belong to no connection. */
    public Account(Ledger ledger) {
        this(ledger, null, 0);
    }

    /**
     * Creates the account of a connection.
     *
     * @param address address of the peer; null if the connection counts for no address, as at a client
     * @param number number of the connection, counted from 0. The connections of each address are counted separately,
     *     and the connections without an address are counted together
     */
    public Account(Ledger ledger, Ledger.@Nullable Address address, int number) {
        this.ledger = ledger;
        this.address = address;
        this.number = number;
    }

    /**
     * Returns the number of the {@link AddressGroups} group to which the connection belongs now. The number can change
     * when other addresses come or go.
     */
    public int group() {
        return ledger.groups().groupOf(address == null ? number : address.groupIndex, number);
    }

    /** Creates an empty charge, by which the caller charges this account for things of {@code kind}. */
    public Charge charge(Resource kind) {
        return new Charge(this, kind);
    }

    /** Returns the {@link Claim}s that all connections of the server or client have on {@code kind}. */
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

    /**
     * Creates a charge for a call that is given up while its handler's future can still hold the request. See
     * {@link Ledger#addLingeringCharge} for the parameters.
     */
    public LingeringCharge addLingeringCharge(Object holder, long objectBytes, int places) {
        return ledger.addLingeringCharge(this, holder, objectBytes, places);
    }

    public long held(Resource kind) {
        return held.get(kind.ordinal());
    }

    /**
     * Returns whether this connection holds more than an eighth of the most that it can hold of {@code kind}. If so, a
     * client releases the buffer of a request on this connection as soon as the request has been sent. The buffer of a
     * notice is kept, since another attempt may need it.
     */
    public boolean holdsMuch(Resource kind) {
        return held(kind) > ledger.maxOfConnection(kind) / 8;
    }

    /** Returns whether all connections together hold more than half of the limit for {@code kind}. */
    public boolean isHalfTaken(Resource kind) {
        return ledger.isHalfTaken(kind);
    }

    /**
     * Sets the function that counts the connection's calls that are under way. {@code Ledger.audit}, which tests call,
     * reports a connection for which the count is not 0.
     */
    public void setCallCounter(LongSupplier calls) {
        underWay = calls;
    }

    long callCount() {
        return underWay.getAsLong();
    }

    /**
     * Ends the account when the connection is over. The account also drops the call counter, so that remaining charges
     * do not keep the connection in memory. A second call does nothing.
     */
    public void close() {
        ledger.closed(this);
        underWay = NOTHING;
    }
}
