          -- The newer count weighs for one window more.
          if uh > 0 or ul > 0 then es, en = es + ws, en + wn end
          due[k] = es * 1000 + (en + 999999 - (en + 999999) % 1000000) / 1000000 + 1 + later * 1000
