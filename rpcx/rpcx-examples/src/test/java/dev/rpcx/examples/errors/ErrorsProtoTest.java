package dev.rpcx.examples.errors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.examples.RawCaller;
import dev.rpcx.examples.Wiretap;
import dev.rpcx.exported.errors.NotEnough;
import dev.rpcx.exported.errors.WithdrawReply;
import dev.rpcx.exported.errors.WithdrawRequest;
import org.junit.jupiter.api.Test;

class ErrorsProtoTest {
    /** Does not declare the exception, as a caller in another language cannot. */
    @RPCXClient(remoteServerName = "accounts")
    interface Undeclared {
        @Method("withdraw")
        long withdraw(long cents);
    }

    @Test
    void theStateOfTheExceptionIsTheTypeThatProtocGenerates() throws Exception {
        byte[] state = NotEnough.newBuilder().setMissing(300).build().toByteArray();
        try (Server server = new Server(0, RegistryServer.registry(new WhatWentWrong.Accounts())).start();
                Client client = Client.standard()) {
            Undeclared accounts = client.create(Undeclared.class, "127.0.0.1", server.port());
            assertThatThrownBy(() -> accounts.withdraw(1300)).isInstanceOfSatisfying(RPCXException.class, e -> {
                assertThat(e.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
                assertThat(e.details()).singleElement().satisfies(detail -> {
                    assertThat(detail.name()).isEqualTo("NotEnough");
                    assertThat(detail.isDeclared()).isTrue();
                    assertThat(detail.message()).isEqualTo(state);
                });
            });
        }
    }

    @Test
    void bytesAreThoseOfTheTypesThatProtocGenerates() throws Exception {
        byte[] request = WithdrawRequest.newBuilder().setCents(-300).build().toByteArray();
        byte[] reply = WithdrawReply.newBuilder().setValue(1300).build().toByteArray();
        try (Server server = new Server(0, RegistryServer.registry(new WhatWentWrong.Accounts())).start();
                Wiretap tap = new Wiretap(server.port());
                Client client = Client.standard();
                RawCaller raw = new RawCaller(server.port())) {
            assertThat(client.create(WhatWentWrong.AccountsClient.class, "127.0.0.1", tap.port())
                            .withdraw(-300))
                    .isEqualTo(1300);
            assertThat(tap.sent()).containsExactly(request);
            assertThat(tap.received()).containsExactly(reply);
            assertThat(raw.call("accounts", "withdraw", WithdrawRequest.parseFrom(request)))
                    .isEqualTo(reply);
        }
    }
}
