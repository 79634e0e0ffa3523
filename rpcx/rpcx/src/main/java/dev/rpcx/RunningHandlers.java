package dev.rpcx;

import java.util.Arrays;

/**
 * The handlers of one connection that run and are counted by their methods' limits, as its event loop knows it: in all
 * and of each method, since a connection has a share of both. Event loop only; after the loop's end, whoever holds the
 * connection's lock.
 */
final class RunningHandlers {
    private int all;

    /** The index is the method's number; the array grows with the numbers that are called. */
    private int[] ofMethod = new int[8];

    /** Takes a place for a handler of this method. @return false if the connection, or the server, has none */
    boolean enter(ServerMethod method, AdmissionLimit limit) {
        int number = method.number();
        if (number >= ofMethod.length) {
            ofMethod = Arrays.copyOf(ofMethod, 2 * number);
        }
        if (!limit.enter(all, ofMethod[number])) {
            return false;
        }
        all++;
        ofMethod[number]++;
        return true;
    }

    /** One that has entered counts no more. */
    void left(ServerMethod method) {
        all--;
        ofMethod[method.number()]--;
    }

    int all() {
        return all;
    }
}
