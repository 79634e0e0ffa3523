package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.schema.Lock;
import dev.rpcx.schema.Schema;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.List;
import org.junit.jupiter.api.Test;

class GeneratorTest {
    private record Hidden(int x, String name, List<Long> numbers, long l, double d) {
        private Hidden {
            name = name.strip();
        }
    }

    static class Bean {
        private int age;
        private String name = "";
        private List<String> tags = List.of();
        private boolean adult;

        public int getAge() {
            return age;
        }

        public void setAge(int age) {
            this.age = age;
        }

        public String name() {
            return name;
        }

        public Bean name(String name) {
            this.name = name;
            return this;
        }

        public List<String> getTags() {
            return tags;
        }

        public void setTags(List<String> tags) {
            this.tags = tags;
        }

        public boolean isAdult() {
            return adult;
        }

        public void setAdult(boolean adult) {
            this.adult = adult;
        }
    }

    @Test
    void privateRecordsAndClassesGetGeneratedCodecs() {
        Codecs codecs = Codecs.standard();
        assertThat(codecs.isGenerated(Hidden.class)).isTrue();
        assertThat(codecs.isGenerated(Bean.class)).isTrue();
    }

    @Test
    void generatedAndReflectiveWriteTheSameBytes() {
        Bean bean = new Bean().name("Ada");
        bean.setAge(36);
        bean.setTags(List.of("a", "b"));
        bean.setAdult(true);
        for (Object value : List.of(new Hidden(-7, "Zoë", List.of(1L, -1L), 1L << 40, 0.5), bean)) {
            Codec<Object> generated = Codecs.standard().value(value.getClass());
            Codec<Object> reflective =
                    Codecs.reflective(new Schema(Lock.none()), Limits.STANDARD).value(value.getClass());
            ByteBuf one = Unpooled.buffer();
            ByteBuf other = Unpooled.buffer();
            generated.write(value, one);
            reflective.write(value, other);
            assertThat(ByteBufUtil.hexDump(one)).isEqualTo(ByteBufUtil.hexDump(other));
            assertThat(generated.read(other)).usingRecursiveComparison().isEqualTo(value);
            assertThat(reflective.read(one)).usingRecursiveComparison().isEqualTo(value);
        }
    }
}
