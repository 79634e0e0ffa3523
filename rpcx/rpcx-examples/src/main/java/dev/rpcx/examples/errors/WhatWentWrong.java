package dev.rpcx.examples.errors;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXError;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.schema.Field;

/**
 * Shows that every failure has a code, and says whether the handler was executed, which one has to know before a retry.
 * A declared exception arrives as itself.
 */
public final class WhatWentWrong {
    @RPCXError
    static final class NotEnough extends Exception {
        private static final long serialVersionUID = 1L;

        private final long missing;

        NotEnough(long missing) {
            super(missing + " cents are missing");
            this.missing = missing;
        }

        public long missing() {
            return missing;
        }
    }

    /** Detail of an error, which says how much can be withdrawn at once. */
    record Limit(@Field(1) long maxCents) {}

    @RPCXServer("accounts")
    static class Accounts {
        @Method("withdraw")
        long withdraw(long cents) throws NotEnough {
            if (cents > 100_000) {
                throw new RPCXException(RPCXException.Code.INVALID, "too much at once").withDetail(new Limit(100_000));
            }
            if (cents > 1000) {
                throw new NotEnough(cents - 1000);
            }
            return 1000 - cents;
        }
    }

    @RPCXClient(remoteServerName = "accounts")
    interface AccountsClient {
        @Method("withdraw")
        long withdraw(long cents) throws NotEnough;
    }

    /** A call that fails. */
    private interface Failing {
        void call() throws NotEnough;
    }

    private WhatWentWrong() {}

    public static void main(String[] args) {
        try (Client client = Client.standard()) {
            int port;
            try (Server server = new Server(0, RegistryServer.registry(new Accounts())).start()) {
                port = server.port();
                AccountsClient accounts = client.create(AccountsClient.class, "127.0.0.1", port);
                printFailure(() -> accounts.withdraw(5000));
                printFailure(() -> accounts.withdraw(500_000));
            }
            AccountsClient gone = client.create(AccountsClient.class, "127.0.0.1", port);
            printFailure(() -> gone.withdraw(1));
        }
    }

    private static void printFailure(Failing failing) {
        try {
            failing.call();
        } catch (NotEnough e) {
            System.out.println("missing: " + e.missing());
        } catch (RPCXException e) {
            System.out.println(e.code() + ", " + e.executed());
            e.detail(Limit.class).ifPresent(limit -> System.out.println("at most " + limit.maxCents()));
        }
    }
}
