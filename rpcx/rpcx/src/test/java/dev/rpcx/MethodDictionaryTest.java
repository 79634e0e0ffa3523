package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class MethodDictionaryTest {
    private static List<String> read(String service, String method) {
        ByteBuf entry = Unpooled.buffer();
        ProtoFields.writeNumber(entry, 1, 7);
        ProtoFields.writeText(entry, 2, service);
        ProtoFields.writeText(entry, 3, method);
        ByteBuf dictionary = Unpooled.buffer().writeByte(1 << 3 | 2);
        Varint.write(dictionary, entry.readableBytes());
        dictionary.writeBytes(entry);
        List<String> read = new ArrayList<>();
        MethodDictionary.read(dictionary, (name, number, shape) -> read.add(name));
        return read;
    }

    @Test
    void aNameThatNoRequestCouldCarryIsRefused() {
        String longest = "x".repeat(Wire.MAX_NAME_BYTES);
        assertThat(read("greeter", longest)).containsExactly(MethodDictionary.key("greeter", longest));
        assertThatThrownBy(() -> read("greeter", longest + "x")).isInstanceOf(WireFault.class);
        assertThatThrownBy(() -> read(longest + "x", "hello")).isInstanceOf(WireFault.class);
    }
}
