package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.EmptyProto;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.Tokens;
import dev.rpcx.internal.schema.DescribedService;
import dev.rpcx.internal.schema.ProtoFile;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import java.util.List;
import java.util.concurrent.Flow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests what a server says of its services. */
@Timeout(60)
class ReflectionTest {
    record Item(@Field(1) String name, @Field(2) int count) {}

    @RPCXServer("shop/tea")
    static final class Shop {
        @Method("place-order")
        List<Item> place(List<Item> items, boolean isDry) {
            return items;
        }

        @Method
        Flow.Publisher<Item> watch() {
            throw new IllegalStateException("not called");
        }

        @Method
        double sum(Flow.Publisher<Double> numbers) {
            throw new IllegalStateException("not called");
        }
    }

    @RPCXServer("clock")
    static final class Clock {
        @Method
        void tick() {}
    }

    @RPCXServer("twins")
    static final class Twins {
        @Method("find")
        void find() {}

        @Method("Find")
        void findAgain() {}
    }

    @RPCXClient(remoteServerName = "rpcx.reflection")
    interface Services {
        List<DescribedService> services();
    }

    private static Server.Builder serving() {
        return Server.builder(RegistryServer.registry(new Shop(), new Clock())).host("127.0.0.1");
    }

    private static List<DescribedService> ask(Server server) {
        try (Client client = Client.standard()) {
            return client.create(Services.class, "127.0.0.1", server.port()).services();
        }
    }

    @Test
    void aServerDescribesItsServicesByDescriptorsOfProtobuf() throws Exception {
        try (Server server = serving().reflection().build().start()) {
            List<DescribedService> services = ask(server);
            assertThat(services.stream().map(DescribedService::name)).containsExactly("shop/tea", "clock");
            DescribedService shop = services.get(0);
            FileDescriptor file = FileDescriptor.buildFrom(
                    FileDescriptorProto.parseFrom(shop.file()), new FileDescriptor[] {EmptyProto.getDescriptor()});
            assertThat(shop.methods()).containsExactly("place-order", "sum", "watch");
            assertThat(file.getServices()).hasSize(1);
            assertThat(file.getServices().get(0).getMethods().stream()
                            .map(method -> method.getName() + " " + method.isClientStreaming() + " "
                                    + method.isServerStreaming() + " "
                                    + method.getInputType().getFields().stream()
                                            .map(FieldDescriptor::getName)
                                            .toList()))
                    .containsExactly(
                            "PlaceOrder false false [items, is_dry]", "Sum true false [value]", "Watch false true []");
            assertThat(ProtoFile.text(file.toProto()))
                    .contains("service ShopTea {", "rpc Sum(stream SumRequest) returns (SumReply);");
        }
    }

    @Test
    void aServerDescribesNothingUnlessItIsTold() {
        try (Server server = serving().build().start()) {
            assertThat(server.services()).noneMatch(name -> name.startsWith("rpcx."));
            assertThatThrownBy(() -> ask(server))
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.NOT_FOUND));
        }
        try (Server server = serving().reflection().reflection().build().start()) {
            assertThat(server.services())
                    .containsExactly(
                            "shop/tea/place-order",
                            "shop/tea/sum",
                            "shop/tea/watch",
                            "clock/tick",
                            "rpcx.reflection/services");
        }
    }

    @Test
    void interceptorsRefuseWhoAsksToo() {
        try (Server server = serving()
                .reflection()
                .interceptor(Tokens.requiring(name -> null))
                .build()
                .start()) {
            assertThatThrownBy(() -> ask(server))
                    .isInstanceOfSatisfying(
                            RPCXException.class,
                            e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAUTHENTICATED));
        }
    }

    @Test
    void namesThatAProtoCannotTellApartAreAnErrorAtStart() {
        assertThatThrownBy(() ->
                        Server.builder(RegistryServer.registry(new Twins())).reflection())
                .isInstanceOf(SchemaException.class)
                .hasMessageContaining("twins: the methods ");
    }
}
