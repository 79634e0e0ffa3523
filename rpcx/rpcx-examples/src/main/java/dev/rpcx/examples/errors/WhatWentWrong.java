package dev.rpcx.examples.errors;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/**
 * Shows that every failure has a code, and says whether the handler was executed, which one has to know before a retry.
 */
public final class WhatWentWrong {
    @RPCXServer("accounts")
    static class Accounts {
        private final CountDownLatch never = new CountDownLatch(1);

        @Method("withdraw")
        long withdraw(long cents) {
            if (cents > 1000) {
                throw new RPCXException(RPCXException.Code.INVALID, "only 1000 cents are there");
            }
            return 1000 - cents;
        }

        @Method("audit")
        void audit() throws InterruptedException {
            never.await(); // ends when the caller gives up, since this thread is then interrupted
        }
    }

    @RPCXClient(remoteServerName = "accounts")
    interface AccountsClient {
        @Method("withdraw")
        long withdraw(long cents);

        @Method("audit")
        void audit();
    }

    private WhatWentWrong() {}

    public static void main(String[] args) {
        try (Client client = Client.standard()) {
            int port;
            try (Server server = new Server(0, RegistryServer.registry(new Accounts())).start()) {
                port = server.port();
                AccountsClient accounts = client.create(AccountsClient.class, "127.0.0.1", port);
                printFailure(() -> accounts.withdraw(5000));
                printFailure(() -> CallContext.within(Duration.ofMillis(100), () -> {
                    accounts.audit();
                    return "";
                }));
            }
            AccountsClient gone = client.create(AccountsClient.class, "127.0.0.1", port);
            printFailure(() -> gone.withdraw(1));
        }
    }

    private static void printFailure(Runnable call) {
        try {
            call.run();
        } catch (RPCXException e) {
            System.out.println(e.code() + ", " + e.executed());
        }
    }
}
